package main

import (
	"os"
	"os/signal"
	"slices"
)

// notIgnored returns those of the signals that this process does not ignore. A process that nohup
// or a script has started in the background ignores HUP or INT, and so do the processes that it
// starts, until it asks for the signal.
func notIgnored(all ...os.Signal) []os.Signal { return slices.DeleteFunc(all, signal.Ignored) }
