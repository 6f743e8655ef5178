package main

import "syscall"

// endWithUs makes the kernel kill the command when this process is killed, because after that no
// process would watch the lock.
func endWithUs(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGKILL }
