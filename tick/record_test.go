package tick_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/fakelock"
	"github.com/mortise-lock/mortise/tick"
)

// notebook is a locker and a store of one instance, and notes all calls with their time. The tick
// of the first minute is the one that counts.
type notebook struct {
	*fakelock.Instance
	began   time.Time
	lines   []string
	refuses map[string][]error // the errors of the next requests for a key; nil is none
	data    string
	gets    error
	puts    []error // of the next Puts
}

func (n *notebook) note(format string, args ...any) {
	at := fmt.Sprintf("%g", time.Since(n.began).Seconds())
	n.lines = append(n.lines, at+" "+fmt.Sprintf(format, args...))
}

func (n *notebook) Do(ctx context.Context, key string, fn func(context.Context, mortise.Token) error) (err error) {
	shown := key
	if at := strings.Index(key, "/run/"); at >= 0 {
		shown = key[:at] + "/run" // followed by a random text
	}
	defer func() { n.note("end %s: %v", shown, err) }()
	if left := n.refuses[shown]; len(left) > 0 {
		n.refuses[shown] = left[1:]
		if left[0] != nil {
			return left[0]
		}
	}
	return n.Instance.Do(ctx, key, func(ctx context.Context, token mortise.Token) error {
		n.note("have %s", shown)
		return fn(ctx, token)
	})
}

// until returns the time until which a call may last.
func (n *notebook) until(ctx context.Context) string {
	deadline, is := ctx.Deadline()
	if !is {
		return "ever"
	}
	return fmt.Sprintf("%g", deadline.Sub(n.began).Seconds())
}

func (n *notebook) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	n.note("get %s until %s", key, n.until(ctx))
	return []byte(n.data), uint64(len(n.data)), n.gets
}

func (n *notebook) Put(ctx context.Context, key string, data []byte, revision uint64) (uint64, error) {
	n.note("put %s %s after %d until %s", key, data, revision, n.until(ctx))
	if len(n.puts) > 0 {
		err := n.puts[0]
		if n.puts = n.puts[1:]; err != nil {
			return 0, err
		}
	}
	n.data = string(data)
	return uint64(len(data)), nil
}

// TestAllThatARunDoes compares every call of the locker, the store and the functions of a job, with
// its time and its arguments, for each way that a tick can take.
func TestAllThatARunDoes(t *testing.T) {
	const minute = "report/2000-01-01T00:01:00Z"
	own := errors.New("own")
	// hold keeps a key until the given second, as another instance does.
	hold := func(other *fakelock.Instance, key string, until int) {
		go other.Do(context.Background(), key, func(context.Context, mortise.Token) error {
			time.Sleep(time.Duration(until-5) * time.Second)
			return nil
		})
	}
	for _, row := range []struct {
		name  string
		first func(n *notebook, other *fakelock.Instance)
		lose  string // the key that is lost in the job
		fails error  // of the job
		want  string
	}{
		{name: "done", want: `
			5 have report/run
			60 have report/2000-01-01T00:01:00Z
			60 get report/finished until 64
			60 have report
			60 run {report 2000-01-01 00:01:00 +0000 UTC 0 3}
			61 end report: <nil>
			61 report {report 2000-01-01 00:01:00 +0000 UTC 0 3} <nil>
			61 get report/finished until 69
			61 put report/finished 2000-01-01T00:01:00Z after 0 until 69
			67 end report/2000-01-01T00:01:00Z: <nil>`},
		{name: "done before", first: func(n *notebook, _ *fakelock.Instance) { n.data = "x 2000-01-01T00:01:00Z y" }, want: `
			5 have report/run
			60 have report/2000-01-01T00:01:00Z
			60 get report/finished until 64
			67 end report/2000-01-01T00:01:00Z: <nil>`},
		{name: "the record cannot be read", first: func(n *notebook, _ *fakelock.Instance) { n.gets = own }, want: `
			5 have report/run
			60 have report/2000-01-01T00:01:00Z
			60 get report/finished until 64
			60 report {report 2000-01-01 00:01:00 +0000 UTC 0 0} own
			60 end report/2000-01-01T00:01:00Z: <nil>`},
		{name: "a conflict, and then no room",
			first: func(n *notebook, _ *fakelock.Instance) {
				n.data, n.puts = "a", []error{fmt.Errorf("so: %w", mortise.ErrConflict), mortise.ErrNoRoom}
			}, want: `
			5 have report/run
			60 have report/2000-01-01T00:01:00Z
			60 get report/finished until 64
			60 have report
			60 run {report 2000-01-01 00:01:00 +0000 UTC 0 3}
			61 end report: <nil>
			61 report {report 2000-01-01 00:01:00 +0000 UTC 0 3} <nil>
			61 get report/finished until 69
			61 put report/finished a 2000-01-01T00:01:00Z after 1 until 69
			61 get report/finished until 69
			61 put report/finished a 2000-01-01T00:01:00Z after 1 until 69
			67 end report/2000-01-01T00:01:00Z: <nil>`},
		{name: "the job still runs elsewhere",
			first: func(n *notebook, other *fakelock.Instance) { hold(other, "report", 65) }, want: `
			5 have report/run
			60 have report/2000-01-01T00:01:00Z
			60 get report/finished until 64
			64 end report: tick: the tick is over
			64 report {report 2000-01-01 00:01:00 +0000 UTC 0 0} tick: skipped because the job was still running
			64 end report/2000-01-01T00:01:00Z: <nil>`},
		{name: "the job runs elsewhere for a while",
			first: func(n *notebook, other *fakelock.Instance) { hold(other, "report", 63) }, want: `
			5 have report/run
			60 have report/2000-01-01T00:01:00Z
			60 get report/finished until 64
			63 have report
			63 run {report 2000-01-01 00:01:00 +0000 UTC 0 4}
			64 end report: <nil>
			64 report {report 2000-01-01 00:01:00 +0000 UTC 0 4} <nil>
			64 get report/finished until 69
			64 put report/finished 2000-01-01T00:01:00Z after 0 until 69
			67 end report/2000-01-01T00:01:00Z: <nil>`},
		{name: "another has the tick",
			first: func(n *notebook, other *fakelock.Instance) { hold(other, minute, 100) }, want: `
			5 have report/run
			64 end report/2000-01-01T00:01:00Z: tick: the tick is over`},
		{name: "the presence is refused twice",
			first: func(n *notebook, _ *fakelock.Instance) {
				n.refuses["report/run"] = []error{mortise.ErrQueueFull, mortise.ErrNoRoom}
			}, want: `
			5 end report/run: mortise: the queue of this lock is full
			6 end report/run: mortise: a limit of the group or of this instance is reached
			7 have report/run
			60 have report/2000-01-01T00:01:00Z
			60 get report/finished until 64
			60 have report
			60 run {report 2000-01-01 00:01:00 +0000 UTC 0 3}
			61 end report: <nil>
			61 report {report 2000-01-01 00:01:00 +0000 UTC 0 3} <nil>
			61 get report/finished until 69
			61 put report/finished 2000-01-01T00:01:00Z after 0 until 69
			67 end report/2000-01-01T00:01:00Z: <nil>`},
		{name: "the tick is refused for now",
			first: func(n *notebook, _ *fakelock.Instance) { n.refuses[minute] = []error{mortise.ErrNotReady} }, want: `
			5 have report/run
			60 end report/2000-01-01T00:01:00Z: mortise: the group cannot answer now
			60 report {report 2000-01-01 00:01:00 +0000 UTC 0 0} mortise: the group cannot answer now`},
		{name: "the tick is refused", first: func(n *notebook, _ *fakelock.Instance) { n.refuses[minute] = []error{own} },
			want: `
			5 have report/run
			60 end report/2000-01-01T00:01:00Z: own
			60 end report/run: <nil>
			60 Run returns own`},
		{name: "the presence is refused",
			first: func(n *notebook, _ *fakelock.Instance) { n.refuses["report/run"] = []error{own} }, want: `
			5 end report/run: own
			5 Run returns own`},
		{name: "the job's lock is refused",
			first: func(n *notebook, _ *fakelock.Instance) { n.refuses["report"] = []error{own} }, want: `
			5 have report/run
			60 have report/2000-01-01T00:01:00Z
			60 get report/finished until 64
			60 end report: own
			60 report {report 2000-01-01 00:01:00 +0000 UTC 0 0} own
			60 end report/2000-01-01T00:01:00Z: <nil>`},
		{name: "the job fails", fails: own, want: `
			5 have report/run
			60 have report/2000-01-01T00:01:00Z
			60 get report/finished until 64
			60 have report
			60 run {report 2000-01-01 00:01:00 +0000 UTC 0 3}
			61 end report: <nil>
			61 report {report 2000-01-01 00:01:00 +0000 UTC 0 3} own
			61 get report/finished until 69
			61 put report/finished 2000-01-01T00:01:00Z after 0 until 69
			67 end report/2000-01-01T00:01:00Z: <nil>`},
		{name: "the job's lock is lost", lose: "report", want: `
			5 have report/run
			60 have report/2000-01-01T00:01:00Z
			60 get report/finished until 64
			60 have report
			60 run {report 2000-01-01 00:01:00 +0000 UTC 0 3}
			60.5 end report: mortise: the lock was lost
			60.5 report {report 2000-01-01 00:01:00 +0000 UTC 0 3} mortise: the lock was lost
			60.5 get report/finished until 69
			60.5 put report/finished 2000-01-01T00:01:00Z after 0 until 69
			67 end report/2000-01-01T00:01:00Z: <nil>`},
		{name: "the tick's lock is lost, and the job fails", lose: minute, fails: own, want: `
			5 have report/run
			60 have report/2000-01-01T00:01:00Z
			60 get report/finished until 64
			60 have report
			60 run {report 2000-01-01 00:01:00 +0000 UTC 0 3}
			60.5 end report: <nil>
			60.5 report {report 2000-01-01 00:01:00 +0000 UTC 0 3} mortise: the lock was lost: own
			60.5 end report/2000-01-01T00:01:00Z: mortise: the lock was lost`},
		{name: "the presence is lost", lose: "report/run", want: `
			5 have report/run
			60 have report/2000-01-01T00:01:00Z
			60 get report/finished until 64
			60 have report
			60 run {report 2000-01-01 00:01:00 +0000 UTC 0 3}
			60.5 end report: <nil>
			60.5 report {report 2000-01-01 00:01:00 +0000 UTC 0 3} mortise: the lock was lost
			60.5 get report/finished until 69
			60.5 put report/finished 2000-01-01T00:01:00Z after 0 until 69
			60.5 end report/2000-01-01T00:01:00Z: <nil>
			60.5 end report/run: mortise: the lock was lost
			60.5 have report/run`},
	} {
		t.Run(row.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				locks := &fakelock.Locks{}
				n := &notebook{Instance: locks.Instance(), began: time.Now(), refuses: map[string][]error{}}
				time.Sleep(5 * time.Second) // the tick of time 0 may no longer begin
				if row.first != nil {
					row.first(n, locks.Instance())
				}
				synctest.Wait()
				job := tick.Job{Name: "report", Schedule: tick.Every(time.Minute), Late: 4 * time.Second, Skew: 3 * time.Second,
					Run: func(ctx context.Context, at tick.Tick) error {
						n.note("run %v", at)
						if row.lose != "" {
							time.AfterFunc(time.Second/2, func() {
								for _, key := range locks.Keys() {
									if key == row.lose || strings.HasPrefix(key, row.lose+"/") && row.lose == "report/run" {
										locks.Lose(key)
									}
								}
							})
						}
						select {
						case <-ctx.Done():
						case <-time.After(time.Second):
						}
						return row.fails
					},
					Report: func(at tick.Tick, err error) { n.note("report %v %v", at, err) },
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				over := false
				go func() {
					err := tick.Run(ctx, n, job)
					if !over {
						n.note("Run returns %v", err)
					}
					ended <- err
				}()
				time.Sleep(105 * time.Second)
				synctest.Wait()
				got := strings.Join(n.lines, "\n")
				over = true
				cancel()
				<-ended
				if want := strings.TrimSpace(strings.ReplaceAll(row.want, "\t", "")); got != want {
					t.Errorf("it does\n%s\nwant\n%s", got, want)
				}
			})
		})
	}
}
