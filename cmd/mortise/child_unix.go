//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The command of run is the child of a watchdog, a second process of this program. So the command
// ends with run however run ends, with SIGKILL too: the watchdog then reads the end of the pipe by
// which run sends it orders.

// watchdogName is the argument 0 of the watchdog. Its further arguments are the process group for
// the command (0 means a new one), the path of the command, and the command's arguments from 0 on.
const watchdogName = "mortise run: watchdog"

const (
	orderLost   = 0xff                  // the lock is lost; every other order is the number of a signal
	killWithin  = 5 * time.Second       // processes of another user cannot be killed
	killAgain   = 5 * time.Millisecond  // processes may be started meanwhile
	lookForRest = 20 * time.Millisecond // whether other processes of the command are left
)

func passedOn() []os.Signal {
	return []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGUSR1,
		syscall.SIGUSR2}
}

func typed(s os.Signal) bool { return s == syscall.SIGINT || s == syscall.SIGQUIT }

// child is the command of run, as run sees it.
type child struct {
	ended    chan int // receives the exit code
	orders   *os.File
	terminal *os.File // nil without a controlling terminal
	close    func()   // closes the files
}

// start starts the command. With a controlling terminal, the command stays in the process group of
// run, whatever its standard input is: a command in another group would be stopped when it reads
// from the terminal. Otherwise it gets a group of its own, so that signals also reach the processes
// that the command has started.
func start(c *call, path string, environ []string) (*child, error) {
	self, err := ownProgram()
	if err != nil {
		return nil, err
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	k := &child{ended: make(chan int, 1), orders: ours}
	k.close = sync.OnceFunc(func() {
		_ = ours.Close()
		_ = k.terminal.Close() // nil fails
	})
	group := 0
	if k.terminal, err = os.OpenFile("/dev/tty", os.O_RDWR|syscall.O_NOCTTY, 0); err == nil {
		group = syscall.Getpgrp()
	} else {
		k.terminal = nil
	}
	adoptOrphans()
	cmd := exec.Command(self)
	cmd.Args = append([]string{watchdogName, strconv.Itoa(group), path}, c.program...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = os.Stdin, c.out, c.errs, environ
	cmd.ExtraFiles = []*os.File{theirs}
	// What kills the group of run, like kill -9 %1 in a shell, must not kill the watchdog.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		k.close()
		return nil, err
	}
	go func() {
		_ = cmd.Wait() // the state has the exit code
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			killRest(0) // the watchdog was killed
		}
		k.ended <- codeOfState(cmd.ProcessState.Sys().(syscall.WaitStatus))
	}()
	return k, nil
}

// inForeground reports whether a key that is typed at the terminal sends a signal to the command.
func (k *child) inForeground() bool {
	if k.terminal == nil {
		return false
	}
	group, err := unix.IoctlGetInt(int(k.terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && group == syscall.Getpgrp()
}

func (k *child) tell(s os.Signal) {
	if number, ok := s.(syscall.Signal); ok {
		_, _ = k.orders.Write([]byte{byte(number)}) // fails if the command has ended
	}
}

// lose asks all processes of the command to end. Then the command counts as ended when all of them
// have ended.
func (k *child) lose() { _, _ = k.orders.Write([]byte{orderLost}) }

// end kills the command, if it has not ended, and all processes that it has started.
func (k *child) end() { k.close() }

// watchdog runs the command, and returns the command's exit code.
func watchdog(args []string) int {
	runtime.LockOSThread() // the kernel ends the command when this thread ends: see child_linux.go
	syscall.CloseOnExec(3)
	group, err := strconv.Atoi(args[1])
	if err != nil || len(args) < 4 {
		return exitFailed
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, notIgnored(passedOn()...)...)
	adoptOrphans()
	attributes := &syscall.SysProcAttr{Setpgid: true, Pgid: group}
	endWithUs(attributes)
	command, err := os.StartProcess(args[2], args[3:],
		&os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: attributes})
	if err != nil {
		fmt.Fprintf(os.Stderr, "mortise run: %v\n", err)
		return exitCannotRun
	}
	target := -command.Pid
	if group != 0 {
		target = command.Pid
	}
	ended, none := make(chan int, 1), make(chan struct{}, 1)
	go reap(command.Pid, ended, none)
	orders := make(chan byte)
	go readOrders(os.NewFile(3, "orders"), orders)
	lost, code := false, 0
	var look <-chan time.Time
	for {
		select {
		case code = <-ended:
			if !lost {
				return code
			}
			ticker := time.NewTicker(lookForRest)
			defer ticker.Stop()
			look = ticker.C
		case <-look:
			if len(rest(target)) == 0 {
				return code
			}
		case s := <-signals:
			_ = syscall.Kill(target, s.(syscall.Signal)) // fails if the command has ended
		case order, more := <-orders:
			switch {
			case !more:
				killRest(target)
				select { // so that no zombie is left to a process 1 that waits for none
				case <-none:
				case <-time.After(killWithin):
				}
				return exitSignal + int(syscall.SIGKILL)
			case order == orderLost:
				lost = true
				for _, pid := range rest(target) {
					_ = syscall.Kill(pid, syscall.SIGTERM)
				}
			default:
				_ = syscall.Kill(target, syscall.Signal(order))
			}
		}
	}
}

func readOrders(from *os.File, orders chan<- byte) {
	defer close(orders)
	for one := make([]byte, 1); ; {
		if n, err := from.Read(one); n != 1 || err != nil {
			return
		}
		orders <- one[0]
	}
}

// reap waits for all children, also for those that have lost their parents. It sends the exit code
// of the command, and tells when there are no children.
func reap(command int, ended chan<- int, none chan<- struct{}) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.ECHILD):
			select {
			case none <- struct{}{}:
			default:
			}
			time.Sleep(lookForRest) // an orphan may come
		case err != nil:
			return
		case pid == command:
			ended <- codeOfState(status)
		}
	}
}

// killRest kills all processes of the command.
func killRest(target int) {
	for until := time.Now().Add(killWithin); time.Now().Before(until); time.Sleep(killAgain) {
		all := rest(target)
		if len(all) == 0 {
			return
		}
		for _, pid := range all {
			_ = syscall.Kill(pid, syscall.SIGKILL) // fails if it has ended
		}
	}
}

func codeOfState(status syscall.WaitStatus) int {
	if status.Signaled() {
		return signalCode(status.Signal())
	}
	return status.ExitStatus()
}

// private restricts new files of this process to the user who runs it, until restore is called. No
// other goroutine may create files until then.
func private() (restore func()) {
	before := syscall.Umask(0o177)
	return func() { syscall.Umask(before) }
}

func signalCode(s os.Signal) int {
	if number, ok := s.(syscall.Signal); ok {
		return exitSignal + int(number)
	}
	return exitFailed
}
