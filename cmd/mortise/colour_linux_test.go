package main

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("there are no terminals here: %v", err)
	}
	t.Cleanup(func() { person.Close() })
	fd := int(person.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	return person, program
}

func TestColoursAreForTerminals(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	said := func(well bool) string {
		person, program := terminal(t)
		(&call{out: program}).verdict(well)
		buf := make([]byte, 100)
		n, err := person.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		return string(buf[:n])
	}
	if got, want := said(true), "\x1b[1;32mwell:\x1b[m "; got != want {
		t.Errorf("a terminal gets %q, want %q", got, want)
	}
	if got, want := said(false), "\x1b[1;31mtrouble:\x1b[m "; got != want {
		t.Errorf("a terminal gets %q, want %q", got, want)
	}
	var pipe bytes.Buffer
	if (&call{out: &pipe}).verdict(false); pipe.String() != "trouble: " {
		t.Errorf("a pipe gets %q", pipe.String())
	}
	for name, value := range map[string]string{"NO_COLOR": "1", "TERM": "dumb"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			if got := said(false); got != "trouble: " {
				t.Errorf("a terminal gets %q", got)
			}
		})
	}
}
