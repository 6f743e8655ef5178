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
	growKeys = 256  // 1 MiB of data
	growData = 4096 // the largest value that Put accepts
	growRest = time.Second / 20
)

// grow puts data at keys below prefix until ctx ends. The state first grows by growKeys values of
// the largest size. grow then replaces these values, so that the log continues to grow and
// snapshots are taken. Calls that fail are repeated, because the group may have no leader for a
// while.
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
