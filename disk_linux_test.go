package main

import (
	"errors"
	"os"
	"syscall"
	"testing"
)

// mountSmall mounts a file system of 8 MB on dir where this process may.
func mountSmall(t *testing.T, dir string) (unmount func(), ok bool) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Logf("no file system may be mounted (%v): the file is limited instead", err)
		return func() {}, false
	}
	return func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}, true
}

// fill writes path until the file system has no room.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("fill: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
