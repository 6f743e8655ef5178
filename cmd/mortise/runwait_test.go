package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestALongWaitIsTold checks that run prints one line when it has waited for long, that a short
// wait prints none, and that a signal still ends the wait.
func TestALongWaitIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		wait   time.Duration
		signal os.Signal // nil if the lock is granted
		want   string
	}{
		"short":               {wait: longWait - time.Millisecond},
		"long":                {wait: 10 * longWait, want: `mortise run: the lock "app" is not granted after 10s`},
		"long, with a signal": {wait: 10 * longWait, signal: syscall.SIGTERM, want: `"app" is not granted`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var errs bytes.Buffer
				c := &call{errs: &errs}
				ctx, cancel := context.WithCancelCause(t.Context())
				signals, over, done := make(chan os.Signal), make(chan struct{}), make(chan struct{})
				go func() {
					defer close(done)
					c.whileWaiting("app", signals, over, cancel)
				}()
				time.Sleep(test.wait) // fake time
				if test.signal != nil {
					signals <- test.signal
				} else {
					close(over)
				}
				<-done
				if got := errs.String(); !strings.Contains(got, test.want) || strings.Count(got, "\n") > 1 ||
					(got == "") != (test.want == "") {
					t.Errorf("it printed %q, want one line with %q", got, test.want)
				}
				if (interrupted(ctx, nil) != nil) != (test.signal != nil) {
					t.Errorf("the wait ended with %v", interrupted(ctx, nil))
				}
				cancel(nil)
			})
		})
	}
}
