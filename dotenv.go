package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/joho/godotenv"
)

const dotenvFile = ".env"

// variables are the environment, and below it what .env adds. The file never
// changes the environment itself: a child process does not inherit secrets
// that were meant for this one.
type variables struct {
	environment func(name string) (string, bool)
	file        map[string]string
}

// lookup returns the value of name, and whether it is set at all. A variable
// that is set in the environment, even to nothing, hides the one in .env.
func (v variables) lookup(name string) (string, bool) {
	if value, ok := v.environment(name); ok {
		return value, true
	}
	value, ok := v.file[name]
	return value, ok
}

// readVariables reads .env in the working directory, if there is one.
func readVariables(environment func(string) (string, bool)) (variables, error) {
	v := variables{environment: environment}
	text, err := os.ReadFile(dotenvFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return v, nil
	case err != nil:
		return v, &configError{[]string{fmt.Sprintf("cannot read %s: %s", dotenvFile, plain(err))}}
	}
	if v.file, err = parseDotenv(string(text)); err != nil {
		// The error is ours: godotenv's would quote the rest of the file, and
		// with it the secrets.
		return v, &configError{[]string{fmt.Sprintf("%s:%d: must be NAME=value, a comment or blank; a value that opens a quote must close it", dotenvFile, badLine(string(text)))}}
	}
	return v, nil
}

// parseDotenv parses text, which need not end in a newline.
func parseDotenv(text string) (map[string]string, error) {
	// Without the newline a last line that has no "=" would pass as a value
	// without a name.
	m, err := godotenv.Unmarshal(text + "\n")
	if _, ok := m[""]; ok && err == nil {
		err = errors.New("a value without a name")
	}
	return m, err
}

// badLine returns the number of the line that does not parse. The parser reads
// from the top, so it is the one after the longest run of lines that parses.
func badLine(text string) int {
	bad, n := 1, 0
	var so strings.Builder
	for line := range strings.Lines(text) {
		n++
		so.WriteString(line)
		if _, err := parseDotenv(so.String()); err == nil {
			bad = n + 1
		}
	}
	return bad
}
