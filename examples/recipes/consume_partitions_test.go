package recipes_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/shard"
)

// partitions represents a log with partitions. Each partition refuses consumers with lower tokens
// than it has seen, and records its present consumer.
type partitions struct {
	mu     sync.Mutex
	owners map[int]string
	tokens map[int]uint64
}

func (p *partitions) attach(who string, s shard.Shard) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if uint64(s.Token) < p.tokens[s.Index] {
		return false
	}
	p.owners[s.Index], p.tokens[s.Index] = who, uint64(s.Token)
	return true
}

func (p *partitions) counts() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	each := map[string]int{}
	for _, who := range p.owners {
		each[who]++
	}
	return each
}

// Three instances consume sixteen partitions. When one of them stops, the others take its
// partitions, and keep their own.
func Example_consumePartitions() {
	ctx := context.Background()
	nodes, stop := startFleet(ctx, "orders-0", "orders-1", "orders-2")
	defer stop()

	log := &partitions{owners: map[int]string{}, tokens: map[int]uint64{}}
	var running sync.WaitGroup
	var leave []context.CancelFunc
	for i, node := range nodes {
		name := fmt.Sprint("orders-", i)
		ctx, cancel := context.WithCancel(ctx)
		leave = append(leave, cancel)
		running.Go(func() {
			_ = shard.Run(ctx, node, shard.Work{Name: "log", Count: 16, Run: func(ctx context.Context, s shard.Shard) error {
				if log.attach(name, s) {
					<-ctx.Done() // consumes
				}
				return ctx.Err()
			}})
		})
	}
	until := func(text string, is func(map[string]int) bool) {
		for deadline := time.Now().Add(time.Minute); !is(log.counts()); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				panic(fmt.Sprint(text, ": ", log.counts()))
			}
		}
		fmt.Println(text)
	}
	until("each has five or six", func(n map[string]int) bool {
		return len(n) == 3 && min(n["orders-0"], n["orders-1"], n["orders-2"]) == 5
	})
	leave[2]()
	until("then each of two has eight", func(n map[string]int) bool { return n["orders-0"] == 8 && n["orders-1"] == 8 })
	leave[0]()
	leave[1]()
	running.Wait()
	// Output:
	// each has five or six
	// then each of two has eight
}
