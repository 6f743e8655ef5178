package main

import "syscall"

// endWithUs makes the kernel kill the command when this process is killed: the lock is then not
// watched.
func endWithUs(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGKILL }
