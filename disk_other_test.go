//go:build !linux

package main

import "testing"

// mountSmall says that no small file system can be had: the file is limited
// instead.
func mountSmall(*testing.T, string) (unmount func(), ok bool) { return func() {}, false }

func fill(*testing.T, string) {}
