package transport

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// OutOfFiles reports whether an operation has failed because this process or this machine may not
// open one more file or socket.
func OutOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// FreeFiles says what to do about an error for which OutOfFiles is true.
const FreeFiles = "raise the limit of open files of this process (ulimit -n, LimitNOFILE), or find what keeps " +
	"them open"

// failing records for how long no connection could be accepted. gRPC calls Accept again at least
// once a second.
type failing struct {
	tell    *notices // nil in tests of the listener alone
	unable  func(since time.Duration)
	mu      sync.Mutex // guards since; never held across a call
	since   time.Time  // the first failure since a connection was accepted; zero means none
	address string
}

// accepted records that a connection was accepted.
func (f *failing) accepted() {
	f.mu.Lock()
	since := f.since
	f.since = time.Time{}
	f.mu.Unlock()
	if !since.IsZero() && f.tell != nil {
		f.tell.info("transport: connections are accepted again", "addr", f.address, "after",
			time.Since(since).Round(time.Millisecond))
	}
}

// failed records an error of Accept. It ignores the end of the listener.
func (f *failing) failed(err error) {
	if errors.Is(err, net.ErrClosed) || f.tell == nil {
		return
	}
	now := time.Now()
	f.mu.Lock()
	if f.since.IsZero() {
		f.since = now
	}
	lasts := now.Sub(f.since)
	f.mu.Unlock()
	next := "check the network of this machine"
	if OutOfFiles(err) {
		next = FreeFiles
	}
	f.tell.warn("transport: a connection could not be accepted; other instances may not reach this one: "+next, "addr",
		f.address, "error", err, "since", lasts.Round(time.Millisecond))
	if f.unable != nil {
		f.unable(lasts)
	}
}
