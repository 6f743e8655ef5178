package main

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	growers  = 16
	growKeys = 256              // 1 MiB of state
	growData = 4096             // the largest value that Put takes
	growRest = time.Second / 20 // after a failure
)

// grow puts data to keys below prefix until ctx ends. The state grows by growKeys values of the
// largest size; then these are put again, so that the log grows on and a snapshot is taken. Calls
// that fail are made again: the group may have no leader for a while.
func (i *instance) grow(ctx context.Context, prefix string) {
	data := bytes.Repeat([]byte{1}, growData)
	var all sync.WaitGroup
	for first := range growers {
		all.Go(func() {
			for n := first; ctx.Err() == nil; n = (n + growers) % growKeys {
				key := fmt.Sprintf("%s/%d", prefix, n)
				_, revision, err := i.node.Get(ctx, key)
				if err == nil {
					_, err = i.node.Put(ctx, key, data, revision)
				}
				if err != nil {
					time.Sleep(growRest)
				}
			}
		})
	}
	all.Wait()
}
