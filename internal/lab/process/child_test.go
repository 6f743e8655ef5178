//go:build unix

package process

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/leftover"
)

const (
	childEnv = "MORTISE_TEST_CHILD"
	dirEnv   = "MORTISE_TEST_DIR"     // directory of a durable child; empty means in memory
	runEnv   = "MORTISE_TEST_RUN_DIR" // run directory of a child in memory; empty means none
	ttlEnv   = "MORTISE_TEST_TTL"     // TTL of a child; empty means leaseTTL
	leaseTTL = 2 * time.Second
)

// request is a line of input to a child. answer is the line that the child writes for it, in any
// order.
type request struct {
	ID   int
	Op   string // lock, unlock, err, status, audit, panic or memory
	Key  string
	Lock int // the ID of the request that got the lock
}

type answer struct {
	ID      int
	Err     string
	Token   uint64 `json:",string"`
	Leading bool
	Term    uint64
	Leader  string
	Waiting string
	Starved time.Duration
	Left    time.Duration // of the lease
	Audited string        // the reason of the last event in the audit log
}

func TestMain(m *testing.M) {
	if config := os.Getenv(childEnv); config != "" {
		runChild(config)
		return
	}
	os.Exit(leftover.Run(m))
}

type child struct {
	node *mortise.Node
	mu   sync.Mutex // guards all below
	out  *json.Encoder
	held map[int]*mortise.Lock
}

func runChild(config string) {
	name, list, _ := strings.Cut(config, " ")
	addresses := strings.Fields(list)
	bind := addresses[0]
	ttl := leaseTTL
	if longer, err := time.ParseDuration(os.Getenv(ttlEnv)); err == nil {
		ttl = longer
	}
	node, err := mortise.Start(context.Background(), mortise.Config{
		Name: name, Bind: bind, Join: addresses, Replicas: len(addresses) - 1, SessionTTL: ttl, Grace: -1,
		Dir: os.Getenv(dirEnv), RunDir: os.Getenv(runEnv),
		Secret: "msk1_a2bfff9c6250151c2086c5b899140b6f977fb1d9f63fc3653490576867a23bdeaa83737c",
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)).With("node", name),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	c := &child{node: node, out: json.NewEncoder(os.Stdout), held: map[int]*mortise.Lock{}}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		go c.answer(r)
	}
	_ = node.Close()
}

func (c *child) answer(r request) {
	a := answer{ID: r.ID}
	var err error
	switch r.Op {
	case "lock":
		var lock *mortise.Lock
		if lock, err = c.node.Lock(context.Background(), r.Key); err == nil {
			a.Token = uint64(lock.Token())
			c.mu.Lock()
			c.held[r.ID] = lock
			c.mu.Unlock()
		}
	case "unlock":
		err = c.lock(r.Lock).Unlock(context.Background())
	case "err":
		err = c.lock(r.Lock).Err()
	case "audit":
		var ends []mortise.Event
		if ends, err = c.node.Audit(context.Background()); len(ends) > 0 {
			a.Audited = ends[len(ends)-1].Reason
		}
	case "panic":
		panic("a bug of the program")
	case "memory": // until the kernel ends the process
		for all := [][]byte(nil); ; {
			all = append(all, bytes.Repeat([]byte{1}, 1<<20))
		}
	case "status":
		s := c.node.Status()
		a.Leading, a.Term, a.Leader, a.Waiting, a.Starved = s.Leading, s.Term, s.Leader, s.Waiting, s.Starved
		a.Left = s.LeaseFor
	}
	if err != nil {
		a.Err = err.Error()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.out.Encode(a)
}

func (c *child) lock(id int) *mortise.Lock {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[id]
}
