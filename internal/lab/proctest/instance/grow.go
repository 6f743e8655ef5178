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
	growKeys = 256  // number of keys; their values have 1 MiB in total
	growData = 4096 // size of a value in bytes; Put accepts no larger value
	growRest = time.Second / 20
)

// grow puts data at keys below prefix until ctx ends. After growKeys values of the largest size it
// replaces these values, so that the log grows and snapshots are taken. It repeats calls that fail,
// because the group may have no leader for a while.
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
