package main

import "syscall"

// endWithUs makes the kernel kill the command when this process is killed, since no process watches
// the lock from then on.
func endWithUs(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGKILL }
