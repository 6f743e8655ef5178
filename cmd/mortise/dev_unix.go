//go:build unix

package main

import (
	"context"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const canPause = true

func pause(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

func goOn(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

// apartFromUs keeps signals of the terminal from the process of an instance. On Linux the kernel
// kills the process when the parent has ended, even while it is paused. Elsewhere the process ends
// by itself, when it is not paused.
func apartFromUs() *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setpgid: true}
	endWithUs(attributes)
	return attributes
}

const (
	keyWait    = 100 * time.Millisecond
	behindWait = 500 * time.Millisecond // between two looks whether a terminal is this process's again
)

// readKeys sends each byte of a terminal or a pipe until ctx ends or there is no more.
func readKeys(ctx context.Context, in *os.File, keys chan<- byte) {
	fd := int(in.Fd())
	t := keyTerminal{fd: fd}
	defer t.restore()
	one := make([]byte, 64)
	for ctx.Err() == nil {
		if isTerminal(in) {
			if !t.inForeground() {
				sleep(ctx, behindWait)
				continue
			}
			t.eachKey()
		} else if ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}},
			int(keyWait.Milliseconds())); ready == 0 || err == unix.EINTR {
			continue
		}
		n, err := unix.Read(fd, one)
		switch {
		case err == unix.EINTR || err == unix.EAGAIN:
			continue
		case err != nil || n == 0 && !isTerminal(in):
			return
		case n > 1 && one[0] == '\x1b':
			continue // a key such as an arrow, which is several bytes
		}
		for _, key := range one[:n] {
			select {
			case keys <- key:
			case <-ctx.Done():
				return
			}
		}
	}
}

// keyTerminal is a terminal that gives each key at once, and does not show it.
type keyTerminal struct {
	fd     int
	before *unix.Termios // nil before the first change
}

func (t *keyTerminal) inForeground() bool {
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	return err == nil && group == syscall.Getpgrp()
}

// eachKey changes the terminal, again if a shell has changed it back. Ctrl-C still sends a signal.
func (t *keyTerminal) eachKey() {
	now, err := unix.IoctlGetTermios(t.fd, getTermios)
	if err != nil || now.Lflag&(unix.ICANON|unix.ECHO) == 0 {
		return
	}
	if t.before == nil {
		kept := *now
		t.before = &kept
	}
	now.Lflag &^= unix.ICANON | unix.ECHO
	now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 0, uint8(keyWait/(100*time.Millisecond)) // a read waits so long for a key
	_ = unix.IoctlSetTermios(t.fd, setTermios, now)                                  // then keys need Enter
}

func (t *keyTerminal) restore() {
	if t.before != nil && t.inForeground() {
		_ = unix.IoctlSetTermios(t.fd, setTermios, t.before)
	}
}
