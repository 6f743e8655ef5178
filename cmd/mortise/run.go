package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
)

// finalWait is how long run tries to end its session after its lock is lost. Lists of sessions
// contain the session until it ends or expires.
const finalWait = 300 * time.Millisecond

// longWait is how long run waits for the lock before it prints that it waits.
const longWait = 10 * time.Second

type runOptions struct {
	try   bool
	wait  time.Duration
	mode  mortise.Mode
	tree  bool
	also  []mortise.Part
	delay time.Duration
	idle  time.Duration
	grace time.Duration
	value string
}

func runFlags(o *runOptions, fs *flag.FlagSet) {
	fs.BoolVar(&o.try, "n", false, "do not wait: exit with 120 if the lock is held")
	fs.DurationVar(&o.wait, "w", 0,
		"wait at most so long, then exit with 120, or with 122 if there was no leader; 0 means without limit")
	fs.TextVar(&o.mode, "mode", mortise.Exclusive,
		`how to lock the key: exclusive, shared, upgradable, or permits of a semaphore, as "2 of 5"`)
	fs.BoolVar(&o.tree, "tree", false, "the key is a node of a tree: also exclude the nodes below it")
	fs.Func("also", "a further key, granted at the same moment: KEY, or KEY,mode=shared, or KEY,mode=shared,tree; "+
		"repeat the flag for more", func(v string) error {
		part, err := partOf(v)
		o.also = append(o.also, part)
		return err
	})
	fs.DurationVar(&o.delay, "lock-delay", 0,
		"how long the lock stays taken after it was lost, or after run was killed; longer than -kill-after, so that the "+
			"command has ended before another one begins")
	fs.DurationVar(&o.idle, "max-idle", 0,
		"the lock is lost when the command has not touched the file in "+beatName+" for so long, at least 100ms; 0 means "+
			"without limit")
	fs.DurationVar(&o.grace, "kill-after", 5*time.Second,
		"when the lock is lost the command gets TERM, and after this time KILL")
	fs.StringVar(&o.value, "value", "",
		"text shown with the hold (the name of the command and its process ID)")
}

func runUnderLock(ctx context.Context, c *call, o runOptions) error {
	key, err := c.key()
	switch {
	case err != nil:
		return err
	case len(c.program) == 0:
		return usageError("which command? mortise run KEY -- COMMAND...")
	case o.try && o.wait != 0:
		return usageError("-n and -w exclude each other: set one")
	case o.wait < 0 || o.grace < 0:
		return usageError("-w and -kill-after must not be negative")
	}
	request := o.request(c, key)
	if err := guest.Check(request); err != nil {
		return err
	}
	path, err := exec.LookPath(c.program[0])
	if err != nil {
		return &exitError{exitNotFound, err.Error()}
	}
	var beats *beatFile
	if o.idle > 0 {
		if beats, err = newBeatFile(c.environ, o.idle); err != nil {
			return err
		}
		defer func() {
			if err := beats.remove(); err != nil {
				c.warn("run", err)
			}
		}()
	}
	g, err := c.guest()
	if err != nil {
		return err
	}
	defer g.Close()
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, notIgnored(passedOn()...)...)
	defer signal.Stop(signals)
	s, lock, err := c.take(o, g, request, signals)
	if err != nil {
		return err
	}
	code, err := c.under(o, lock, beats, path, signals)
	give := c.within
	if lock.Err() != nil {
		give = finalWait // the leader may be unreachable
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), give)
	defer cancel()
	if gone := errors.Join(lock.Unlock(ctx), s.Close(ctx)); gone != nil && err == nil {
		if errors.Is(gone, mortise.ErrLost) {
			return &exitError{exitLost, "the lock was lost before the command ended by itself: " + o.lost(gone, beats).Error()}
		}
		c.warn("run", fmt.Errorf("the lock was not released in time; it expires with its session: %w", gone))
	}
	if err == nil && code != 0 {
		err = &exitError{code: code}
	}
	return err
}

// request returns the request for the lock.
func (o runOptions) request(c *call, key string) mortise.Request {
	value := o.value
	if value == "" {
		value = fmt.Sprintf("%s, process %d", filepath.Base(c.program[0]), os.Getpid())
	}
	return mortise.Request{Key: key, Try: o.try, Mode: o.mode, Tree: o.tree, Also: o.also, LockDelay: o.delay,
		MaxIdle: o.idle, Value: value}
}

func (c *call) take(o runOptions, g *guest.Guest, r mortise.Request, signals <-chan os.Signal) (*guest.Session,
	*guest.Lock, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	asking, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		c.whileWaiting(r.Key, signals, asking, cancel)
	}()
	heard := sync.OnceFunc(func() { close(asking); <-done }) // after this call, the goroutine receives no signal
	defer heard()
	wait := o.wait
	if o.try {
		wait = max(c.within, 3*time.Second) // enough time for the reply
	}
	if wait > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, wait)
		defer stop()
	}
	s, err := g.Session(ctx)
	if err != nil {
		return nil, nil, interrupted(ctx, err)
	}
	lock, err := s.Acquire(ctx, r)
	heard()
	if err == nil && interrupted(ctx, nil) == nil {
		return s, lock, nil
	}
	if err == nil { // a signal arrived while the lock was being granted
		err = errors.Join(interrupted(ctx, nil), lock.Unlock(ctx))
	}
	closing, stop := context.WithTimeout(context.Background(), finalWait)
	defer stop()
	_ = s.Close(closing) // if this fails, the session expires; it holds no lock
	return nil, nil, interrupted(ctx, err)
}

// whileWaiting returns when the wait for a lock is over, or when a signal has ended it.
func (c *call) whileWaiting(key string, signals <-chan os.Signal, over <-chan struct{},
	cancel context.CancelCauseFunc) {
	long := time.NewTimer(longWait)
	defer long.Stop()
	for {
		select {
		case s := <-signals:
			cancel(&exitError{signalCode(s), "ended by " + s.String() + " while waiting for the lock"})
			return
		case <-long.C:
			c.warn("run", fmt.Errorf("the lock %q is not granted after %v, and the wait goes on: mortise doctor %s, with "+
				"the same flags, says why, and what to do", key, longWait, key))
		case <-over:
			return
		}
	}
}

func interrupted(ctx context.Context, err error) error {
	var own *exitError
	if errors.As(context.Cause(ctx), &own) {
		return own
	}
	return err
}

// lost returns an error with the reason of a loss, in the words of run.
func (o runOptions) lost(err error, beats *beatFile) error {
	if !errors.Is(err, guest.IdleError{}) {
		return err
	}
	text := fmt.Sprintf("the command has not touched the file in %s for %v (-max-idle)", beatName, o.idle)
	if beats.gone.Load() {
		text += ", and the file is gone"
	}
	return fmt.Errorf("%w: %s", mortise.ErrLost, text)
}

// under runs the command while the lock is held. It returns the exit code of the command. beats is
// nil without -max-idle.
func (c *call) under(o runOptions, lock *guest.Lock, beats *beatFile, path string,
	signals <-chan os.Signal) (code int, err error) {
	if err := lock.Err(); err != nil {
		return 0, &exitError{exitLost, "the lock was lost before the command could begin: " + o.lost(err, beats).Error()}
	}
	own := []string{prefix + "_TOKEN=" + fmt.Sprint(uint64(lock.Token())), prefix + "_KEY=" + c.words[0]}
	if beats != nil {
		own = append(own, beatName+"="+beats.path)
		beats.watch(lock.Beat)
		defer beats.stop()
	}
	command, err := start(c, path, childEnviron(c.environ, own))
	if err != nil {
		return 0, &exitError{exitCannotRun, err.Error()}
	}
	defer command.end()
	var kill <-chan time.Time
	var lost error
	gone := lock.Done()
	for {
		select {
		case code := <-command.ended:
			if lost != nil {
				return 0, &exitError{exitLost, "the lock was lost, and the command has ended: " + endedWith(code)}
			}
			return code, nil
		case s := <-signals:
			if !typed(s) || !command.inForeground() { // Ctrl-C at a terminal has already reached the command
				command.tell(s)
			}
		case <-gone:
			gone, lost = nil, o.lost(lock.Err(), beats)
			c.warn("run", fmt.Errorf("%w: the command is asked to end, and killed in %v", lost, o.grace))
			command.lose()
			timer := time.NewTimer(o.grace)
			defer timer.Stop()
			kill = timer.C
		case <-kill:
			command.end()
		}
	}
}

// endedWith describes an exit code.
func endedWith(code int) string {
	if code > exitSignal {
		return "ended by signal " + strconv.Itoa(code-exitSignal)
	}
	return "exit code " + strconv.Itoa(code)
}

// childEnviron returns the environment of the command: that of run, with the variables own.
func childEnviron(environ, own []string) (list []string) {
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if !slices.ContainsFunc(own, func(one string) bool { return strings.HasPrefix(one, name+"=") }) {
			list = append(list, pair)
		}
	}
	return append(list, own...)
}
