package main

import "syscall"

// endWithUs makes the kernel kill the command when this process is killed, because no other process
// watches the lock.
func endWithUs(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGKILL }
