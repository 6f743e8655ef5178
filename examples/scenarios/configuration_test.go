package scenarios_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/mortise-lock/mortise"
)

// settings stands for the table of settings, with the token of whoever has written each, and the table of their changes.
type settings struct {
	mu     sync.Mutex
	values map[string]string
	tokens map[string]mortise.Token
	audit  []change
}

type change struct {
	why, what string
	token     mortise.Token // of two changes of one setting the later has the higher one, whatever the clocks say
}

// set writes several settings and the record of it, all or nothing.
func (s *settings) set(token mortise.Token, why string, values map[string]string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range values {
		if token < s.tokens[key] {
			return fmt.Errorf("%s has been changed by a later holder of its lock", key)
		}
	}
	var what []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		s.values[key], s.tokens[key] = values[key], token
		what = append(what, key+"="+values[key])
	}
	s.audit = append(s.audit, change{why, strings.Join(what, " "), token})
	return nil
}

// A change of the configuration with an audit: prices and limits change together, everybody can see meanwhile who is at it and why, and
// the record says it afterwards.
func Example_configurationChange() {
	ctx := context.Background()
	nodes, stop := startFleet(ctx, "admin-0", "admin-1", "admin-2")
	defer stop()
	config := settings{values: map[string]string{}, tokens: map[string]mortise.Token{}}

	// change is what stands behind the button. It locks what it changes, all at once; without a Value that is node.LockAll(ctx, keys...).
	change := func(node *mortise.Node, why string, values map[string]string, meanwhile func()) error {
		lock, err := node.Acquire(ctx, mortise.Request{Keys: slices.Collect(maps.Keys(values)), Value: why})
		if err != nil {
			return err
		}
		meanwhile()
		err = config.set(lock.Token(), why, values)
		return errors.Join(err, lock.Unlock(ctx))
	}

	err := change(nodes[0], "anna: summer sale, CHG-17", map[string]string{"prices": "summer", "limits": "20"}, func() {
		info, err := nodes[1].Peek(ctx, "prices") // somebody looks, on another instance
		check(err)
		for _, s := range info.Queue[:info.Held] {
			fmt.Printf("%s is locked on %s for %q, with %v\n", info.Key, s.Holder, s.Value, s.Keys)
		}
	})
	check(err)
	check(change(nodes[2], "ben: sale is over, CHG-18", map[string]string{"prices": "normal"}, func() {}))

	// Whoever needs both as they belong together shares the locks with others who read.
	lock, err := nodes[1].Acquire(ctx, mortise.Request{Keys: []string{"prices", "limits"}, Shared: true})
	check(err)
	fmt.Println("now:", config.values["prices"], config.values["limits"])
	check(lock.Unlock(ctx))

	for _, c := range config.audit {
		fmt.Printf("audit: %s: %s\n", c.why, c.what)
	}
	// Output:
	// prices is locked on admin-0 for "anna: summer sale, CHG-17", with [limits prices]
	// now: normal 20
	// audit: anna: summer sale, CHG-17: limits=20 prices=summer
	// audit: ben: sale is over, CHG-18: prices=normal
}
