//go:build unix

package main

import "golang.org/x/sys/unix"

// connLimit is the number of connections to one listener. It leaves most of the files that the
// process may open to the instance's port and its directory.
func connLimit() int {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return maxConns
	}
	return int(min(maxConns, max(16, uint64(files.Cur)/4)))
}
