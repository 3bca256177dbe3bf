package send

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// ExecEnvNames are the variables that every program gets, if paidonce has them:
// what finds programs, files, language and time zone. No secret is among them.
// The second line is what programs on Windows do not start without.
var ExecEnvNames = []string{
	"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR",
	"SystemRoot", "SystemDrive", "ComSpec", "PATHEXT", "TEMP", "TMP", "USERPROFILE",
}

const ownPrefix = "PAIDONCE_"

// passed picks what a program gets of the environment.
func passed(environ, more []string) ([]string, error) {
	for _, name := range more {
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			return nil, errors.New("a variable to hand on must be a name, without a value")
		case len(name) >= len(ownPrefix) && strings.EqualFold(name[:len(ownPrefix)], ownPrefix):
			return nil, fmt.Errorf("%s is of paidonce itself and is not handed on", name)
		}
	}
	var kept []string
	for _, variable := range environ {
		name, _, ok := strings.Cut(variable, "=")
		same := func(other string) bool {
			return name == other || runtime.GOOS == "windows" && strings.EqualFold(name, other)
		}
		if ok && (slices.ContainsFunc(ExecEnvNames, same) || slices.ContainsFunc(more, same)) {
			kept = append(kept, variable)
		}
	}
	return kept, nil
}
