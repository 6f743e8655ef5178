package scenarios_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/mortise-lock/mortise"
)

// settings stands for the table of settings, and that of their changes.
type settings struct {
	mu     sync.Mutex
	values map[string]string
	audit  []change
}

type change struct {
	who, what string
	token     mortise.Token // orders the changes, whatever the clocks say
}

// set writes several settings and the record of it, all or nothing.
func (s *settings) set(token mortise.Token, who string, values map[string]string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.audit); n > 0 && token <= s.audit[n-1].token {
		return errors.New("a later change was here")
	}
	var what []string
	for key, value := range values {
		what = append(what, key+"="+value)
		s.values[key] = value
	}
	slices.Sort(what)
	s.audit = append(s.audit, change{who, strings.Join(what, " "), token})
	return nil
}

// A change of the configuration with an audit: prices and limits change together, everybody can see meanwhile who is at it and why, and
// the record says it afterwards.
func Example_configurationChange() {
	ctx := context.Background()
	nodes, stop := startFleet(ctx, "admin-0", "admin-1", "admin-2")
	defer stop()
	config := settings{values: map[string]string{}}
	keys := []string{"config/limits", "config/prices"}

	// change is what stands behind the button. Without a Value it begins with node.LockAll(ctx, keys...).
	change := func(node *mortise.Node, why string, values map[string]string, meanwhile func()) error {
		lock, err := node.Acquire(ctx, mortise.Request{Keys: keys, Value: why})
		if err != nil {
			return err
		}
		err = config.set(lock.Token(), why, values)
		meanwhile()
		return errors.Join(err, lock.Unlock(ctx))
	}

	err := change(nodes[0], "anna: summer sale, CHG-17", map[string]string{"prices": "summer", "limits": "20"}, func() {
		info, err := nodes[1].Peek(ctx, "config/prices") // on another instance
		check(err)
		for _, s := range info.Queue[:info.Held] {
			fmt.Printf("%s is locked on %s for %q, with %v\n", info.Key, s.Holder, s.Value, s.Keys)
		}
	})
	check(err)
	check(change(nodes[2], "ben: sale is over, CHG-18", map[string]string{"prices": "normal"}, func() {}))

	// Whoever needs both as they belong together shares the locks with others who read.
	lock, err := nodes[1].Acquire(ctx, mortise.Request{Keys: keys, Shared: true})
	check(err)
	fmt.Println("now:", config.values["prices"], config.values["limits"])
	check(lock.Unlock(ctx))

	for _, c := range config.audit {
		fmt.Printf("audit: %s: %s\n", c.who, c.what)
	}
	// Output:
	// config/prices is locked on admin-0 for "anna: summer sale, CHG-17", with [config/limits config/prices]
	// now: normal 20
	// audit: anna: summer sale, CHG-17: limits=20 prices=summer
	// audit: ben: sale is over, CHG-18: prices=normal
}
