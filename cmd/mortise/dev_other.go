//go:build !unix

package main

import (
	"context"
	"errors"
	"os"
	"syscall"
)

const canPause = false

func pause(*os.Process) error { return errors.ErrUnsupported }

func goOn(*os.Process) error { return errors.ErrUnsupported }

func apartFromUs() *syscall.SysProcAttr { return nil }

func ownProgram() (string, error) { return os.Executable() }

// readKeys sends each byte of its input until ctx ends. On this platform keys need Enter, and the
// goroutine that reads ends with the process or its input.
func readKeys(ctx context.Context, in *os.File, keys chan<- byte) {
	read := make(chan byte)
	go func() {
		defer close(read)
		for one := make([]byte, 1); ; {
			if n, err := in.Read(one); n != 1 || err != nil {
				return
			}
			select {
			case read <- one[0]:
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case key, more := <-read:
			if !more {
				return
			}
			select {
			case keys <- key:
			case <-ctx.Done():
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
