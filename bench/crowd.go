package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-lock/mortise/session/client"
)

type crowd struct {
	lights []*light

	mu       sync.Mutex // guards the fields below
	attached []int      // since reset
	isIn     []bool
	last     time.Time // when the last session was attached
	all      chan struct{}
}

func openCrowd(ctx context.Context, g groupAnswer, encrypted bool, first, n int) (c *crowd, err error) {
	if err := roomFor(uint64(n)*3+1000, uint64(n)*lightBytes); err != nil {
		return nil, err
	}
	security, err := lightSecurity(encrypted)
	if err != nil {
		return nil, err
	}
	c = &crowd{lights: make([]*light, n)}
	c.reset()
	var next atomic.Int64
	// open 16 at a time, because the processors can set up about 16 connections concurrently
	err = together(16, func(int) error {
		for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
			l, err := openLight(g, security, first+i, func(p client.Phase) { c.changed(i, p) })
			if err != nil {
				return err
			}
			c.lights[i] = l
			if err := l.client.WaitAttached(ctx); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	if err != nil {
		c.close()
	}
	return c, err
}

func (c *crowd) changed(i int, p client.Phase) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p != client.Attached || c.isIn[i] {
		return
	}
	c.isIn[i], c.last = true, time.Now()
	if c.attached = append(c.attached, i); len(c.attached) == len(c.isIn) {
		close(c.all)
	}
}

func (c *crowd) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attached, c.isIn, c.all = nil, make([]bool, len(c.lights)), make(chan struct{})
}

func (c *crowd) one() *light {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.attached) == 0 {
		return nil
	}
	return c.lights[c.attached[rand.IntN(len(c.attached))]]
}

func (c *crowd) close() {
	_ = together(len(c.lights), func(i int) error { return c.lights[i].close() })
}

type returned struct {
	Last  time.Time       // when the last session was attached again
	Waits []time.Duration // times to get a free lock in the sessions attached so far
}

// This method executes the command "returns". It waits until all sessions are attached. Until then,
// callers lock and unlock free keys in the sessions that are attached.
func (c *crowd) returns(ctx context.Context, first int) (r returned, err error) {
	var mu sync.Mutex
	err = together(4, func(caller int) error {
		for turn := 0; ; turn++ {
			select {
			case <-c.all:
				return nil
			case <-ctx.Done():
				c.mu.Lock()
				defer c.mu.Unlock()
				return fmt.Errorf("%d of %d sessions are attached: %w", len(c.attached), len(c.isIn), ctx.Err())
			default:
			}
			l := c.one()
			if l == nil {
				time.Sleep(time.Millisecond)
				continue
			}
			began := time.Now()
			hold, err := l.client.Acquire(ctx, fmt.Sprintf("storm-%d-%d-%d", first, caller, turn), false)
			if err != nil {
				return err
			}
			mu.Lock()
			r.Waits = append(r.Waits, time.Since(began))
			mu.Unlock()
			if err := hold.Release(ctx); err != nil && !errors.Is(err, client.ErrLost) {
				return err
			}
		}
	})
	r.Last = c.last
	return r, err
}

type crowdOptions struct {
	Group     groupAnswer
	Encrypted bool
	First, N  int
}

// serveCrowd is the main function of a process with a crowd. It executes the commands that it reads
// as lines from in, until in ends. After the command open it answers "attached" when all sessions
// are attached.
func serveCrowd(ctx context.Context, text string, in io.Reader, out io.Writer) error {
	var o crowdOptions
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	var c *crowd
	return answerLines(in, out, func(question string) (string, error) {
		switch question {
		case "open":
			var err error
			c, err = openCrowd(ctx, o.Group, o.Encrypted, o.First, o.N)
			return "attached", err
		case "reset":
			c.reset()
			return "reset", nil
		case "returns":
			ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
			defer cancel()
			r, err := c.returns(ctx, o.First)
			if err != nil {
				return "", err
			}
			text, err := json.Marshal(r)
			return string(text), err
		}
		return "", fmt.Errorf("what is %q?", question)
	})
}

func encrypted(p Peer) bool { return strings.HasSuffix(p.Name, "-tls") }
