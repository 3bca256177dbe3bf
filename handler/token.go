package handler

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
)

// LoadToken returns the admin token that stands in the file at path, which it
// makes, readable for its owner alone, if it is not there. Several processes
// that do so at once get the same token. A file that others can read is used,
// with a warning. Errors name the path.
//
// A token from the environment wins over the file: then main calls NewToken and
// leaves the file alone.
func LoadToken(path string, log *slog.Logger) (Secret, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeTokenFile(path); err != nil {
			return Secret{}, fmt.Errorf("make the admin token: %w (or set PAIDONCE_ADMIN_TOKEN)", err)
		}
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return Secret{}, fmt.Errorf("read the admin token: %w", err)
	}
	// Windows has no such bits: what it shows there means nothing.
	if info, err := os.Stat(path); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		log.Warn("handler: other users of this machine can read the admin token: chmod 600 "+path, "mode", info.Mode().Perm().String())
	}
	token, err := NewToken(string(text))
	if err != nil {
		return Secret{}, fmt.Errorf("%s: %w: delete the file, and the next start makes a new one", path, err)
	}
	return token, nil
}

// makeTokenFile writes a new token to path unless there is one by now. The file
// is written under another name first and linked, so that nobody ever reads
// half of it, and of two that come at once one wins.
func makeTokenFile(path string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails: it ends the program instead
	_, err = f.WriteString(base64.RawURLEncoding.EncodeToString(key) + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
