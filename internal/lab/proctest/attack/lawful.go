//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/guest"
	"github.com/mortise-lock/mortise/internal/lab/proctest/attack/plan"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// lawful are legitimate clients beside the attackers. They run in the process of the campaign. Each
// locks and unlocks keys of its own, one after the other, without a pause.
type lawful struct {
	guest   atomic.Int64 // locks of a guest that stays
	program atomic.Int64 // locks of a program of the agent
	fresh   atomic.Int64 // guests that came, locked, asked and went
	failed  atomic.Int64 // guests that could not do this in time

	mu   sync.Mutex // guards the fields below
	lost []string   // locks of the guest that stays
	why  string     // the last error of a guest that came
}

const (
	freshEvery  = 2 * time.Second
	freshWithin = 10 * time.Second // for all that a new guest does
	lockWithin  = 5 * time.Second
	lawfulKeys  = 16
	inOneLease  = 20 // locks of a lease of the program
)

func (l *lawful) lose(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lost) < 20 {
		l.lost = append(l.lost, fmt.Sprintf(format, args...))
	}
}

func (l *lawful) losses() (lost []string, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost, l.why
}

// run makes all clients work until ctx ends.
func (l *lawful) run(ctx context.Context, secrets map[string]string, addrs []string, agent string) error {
	g, s, err := plan.Enter(ctx, secrets["guest"], addrs)
	if err != nil {
		return fmt.Errorf("the legitimate guest: %w", err)
	}
	var all sync.WaitGroup
	all.Go(func() { l.stay(ctx, s) })
	all.Go(func() { l.come(ctx, secrets["fresh"], addrs) })
	all.Go(func() { l.ask(ctx, &door{at: agent, secret: secrets["program"]}) })
	all.Wait()
	ending, cancel := context.WithTimeout(context.Background(), lockWithin)
	defer cancel()
	_ = s.Close(ending)
	return g.Close()
}

// stay locks keys with one session, and holds one lock all the time.
func (l *lawful) stay(ctx context.Context, s *guest.Session) {
	kept, err := s.Acquire(ctx, mortise.Request{Key: "guest/kept"})
	if err != nil {
		l.lose("a guest was not granted a free lock: %v", err)
		return
	}
	defer func() { _ = kept.UnlockSoon() }()
	for n := 0; ctx.Err() == nil; n++ {
		if err := kept.Err(); err != nil {
			l.lose("a guest has lost a lock: %v", err)
			return
		}
		limited, cancel := context.WithTimeout(ctx, lockWithin)
		lock, err := s.Acquire(limited, mortise.Request{Key: fmt.Sprintf("guest/%d", n%lawfulKeys)})
		if err == nil {
			err = lock.Unlock(limited)
		}
		if cancel(); err == nil {
			l.guest.Add(1)
		}
	}
}

// come is a new guest every few seconds, which has its own identity and link.
func (l *lawful) come(ctx context.Context, secret string, addrs []string) {
	for ctx.Err() == nil {
		limited, cancel := context.WithTimeout(ctx, freshWithin)
		err := visit(limited, secret, addrs)
		switch cancel(); {
		case ctx.Err() != nil:
		case err == nil:
			l.fresh.Add(1)
		default:
			l.failed.Add(1)
			l.mu.Lock()
			l.why = err.Error()
			l.mu.Unlock()
		}
		wait(ctx, freshEvery)
	}
}

func visit(ctx context.Context, secret string, addrs []string) error {
	g, s, err := plan.Enter(ctx, secret, addrs)
	if err != nil {
		return err
	}
	lock, err := s.Acquire(ctx, mortise.Request{Key: "fresh/key"})
	if err == nil {
		_, err = guest.Put(ctx, g, query.AdminClient.Peek, &query.KeyRequest{Key: []byte("fresh/key")})
		err = errors.Join(err, lock.Unlock(ctx))
	}
	return errors.Join(err, s.Close(ctx), g.Close())
}

// ask locks through the agent, with a new lease and a new connection from time to time.
func (l *lawful) ask(ctx context.Context, d *door) {
	for n := 0; ctx.Err() == nil; {
		d.client = &http.Client{Transport: &http.Transport{}, Timeout: lockWithin}
		var a struct {
			Lease string
			Token string
		}
		err := d.post(ctx, "leases", map[string]any{"name": "program", "ttl_seconds": 30}, &a)
		lease := a.Lease
		for i := 0; i < inOneLease && err == nil; i++ {
			n++
			key := fmt.Sprintf("program/%d", n%lawfulKeys)
			err = d.post(ctx, "lock", map[string]any{"lease": lease, "key": key}, &a)
			if err == nil {
				err = d.post(ctx, "unlock", map[string]any{"lease": lease, "token": a.Token}, nil)
			}
			if err == nil {
				l.program.Add(1)
			}
		}
		if lease != "" {
			_ = d.post(ctx, "end", map[string]any{"lease": lease}, nil)
		}
		if d.client.CloseIdleConnections(); err != nil {
			wait(ctx, 50*time.Millisecond)
		}
	}
}

// door is the HTTP API of an agent, with a program's derived secret.
type door struct {
	at, secret string
	client     *http.Client
}

func (d *door) post(ctx context.Context, what string, body map[string]any, into any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.at+"/v1/"+what, bytes.NewReader(b))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+d.secret)
	answer, err := d.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
		return fmt.Errorf("%s: %s: %s", what, answer.Status, text)
	}
	if into == nil {
		_, err = io.Copy(io.Discard, answer.Body)
		return err
	}
	return json.NewDecoder(answer.Body).Decode(into)
}
