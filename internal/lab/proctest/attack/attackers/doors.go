//go:build linux

package attackers

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/internal/credentials"
	"github.com/mortise-lock/mortise/internal/lab/proctest/attack/plan"
)

// The attacks in this file send requests to the HTTP API of an agent, as any program of its machine
// can. None of them has a secret of the cluster.

const (
	madeUpSecrets  = 400
	madeUpWithin   = 12 * time.Second
	idleKept       = 3_000 // connections that the attacker wants to keep open
	idleInTurn     = 50
	idleFor        = time.Minute
	leaseClients   = 12
	leasesOfClient = 1_000
)

// post sends a request to the agent and discards the answer. The result is the status code, or 0.
func post(ctx context.Context, client *http.Client, url, secret, body string) int {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0
	}
	r.Header.Set("Content-Type", "application/json")
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	answer, err := client.Do(r)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

func tried(code int) Tally {
	if code != http.StatusOK {
		return Tally{Tried: 1, Refused: 1}
	}
	return Tally{Tried: 1}
}

// madeUp sends requests with secrets that are derived from a root secret of the attacker.
func (a *attacker) madeUp(ctx context.Context, _ known) (t Tally) {
	ctx, cancel := context.WithTimeout(ctx, madeUpWithin)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	root, codes := credentials.GenerateSecret(), make(chan int)
	for n := range madeUpSecrets {
		go func() {
			secret, err := plan.Derive(root, fmt.Sprintf("made-up-%d", n), "lock *")
			if err != nil {
				codes <- 0
				return
			}
			codes <- post(ctx, client, a.plan.Agent+"/v1/leases", secret, "{}")
		}()
	}
	for range madeUpSecrets {
		one := tried(<-codes)
		t.Tried, t.Refused, t.Believed = t.Tried+1, t.Refused+one.Refused, t.Believed+1-one.Refused
	}
	return t
}

// idlePool contains connections to the agent on which one request was answered.
type idlePool struct {
	mu   sync.Mutex // guards the fields below
	till time.Time
	open map[net.Conn]bool
}

// fill opens connections, sends one request on each, and keeps them.
func (p *idlePool) fill(a *attacker, ctx context.Context, _ known) (t Tally) {
	if t.Open = p.settled(); t.Open >= idleKept {
		return t
	}
	addr := strings.TrimPrefix(a.plan.Agent, "http://")
	for range idleInTurn {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err == nil {
			_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
			_, err = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: "+addr+"\r\n\r\n")
		}
		if err == nil {
			err = answered(conn)
		}
		one := refused(err)
		t.Tried, t.Refused = t.Tried+one.Tried, t.Refused+one.Refused
		if err != nil {
			if conn != nil {
				conn.Close()
			}
			continue
		}
		p.keep(conn)
	}
	return t
}

func answered(conn net.Conn) error {
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(&bytes.Buffer{}, answer.Body)
	_ = conn.SetDeadline(time.Time{})
	return err
}

// settled returns the number of connections that the agent has not closed. After idleFor it closes
// all.
func (p *idlePool) settled() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Now().After(p.till) {
		for conn := range p.open {
			conn.Close()
		}
		p.open, p.till = map[net.Conn]bool{}, time.Now().Add(idleFor)
	}
	return int64(len(p.open))
}

// keep holds a connection until the agent or settled closes it.
func (p *idlePool) keep(conn net.Conn) {
	p.mu.Lock()
	p.open[conn] = true
	p.mu.Unlock()
	go func() {
		_, _ = io.Copy(io.Discard, conn)
		conn.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, conn)
	}()
}

// allLeases opens long leases on many connections of one program, with the agent's own rights.
func (a *attacker) allLeases(ctx context.Context, _ known) (t Tally) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tallies := make(chan Tally)
	for range leaseClients {
		go func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			var sum Tally
			for n := 0; n < leasesOfClient && sum.Refused < 10 && ctx.Err() == nil; n++ {
				one := tried(post(ctx, client, a.plan.Agent+"/v1/leases", "", `{"ttl_seconds":60}`))
				sum.Tried, sum.Refused = sum.Tried+1, sum.Refused+one.Refused
			}
			tallies <- sum
		}()
	}
	for range leaseClients {
		one := <-tallies
		t.Tried, t.Refused = t.Tried+one.Tried, t.Refused+one.Refused
	}
	return t
}
