package e2e

import (
	"context"
	"fmt"
	"maps"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/outside"
)

// headlessService resolves a name as a headless Service of Kubernetes does: to the pods that are
// ready, or to all pods if publish is set.
type headlessService struct {
	mu      sync.Mutex // guards the fields below
	publish bool       // the option publishNotReadyAddresses
	pods    map[string]*node
}

func (s *headlessService) resolve(_ context.Context, name string) ([]string, error) {
	if net.ParseIP(name) != nil {
		return []string{name}, nil
	}
	// The mutex is not held while ready runs, because fake time stops while a goroutine waits for a
	// mutex.
	s.mu.Lock()
	publish, pods := s.publish, maps.Clone(s.pods)
	s.mu.Unlock()
	var ips []string
	for ip, node := range pods {
		if publish || node != nil && ready(node) {
			ips = append(ips, ip)
		}
	}
	if name != "orders.example" || len(ips) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	return ips, nil
}

func ready(node *node) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	return node.Ready(ctx) == nil
}

func (s *headlessService) set(ip string, node *node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods[ip] = node
}

// TestANameWithoutAddressesUntilAPodIsReady uses a Service that lists only ready pods. The
// instances must report why they wait, and must continue once the Service is corrected.
func TestANameWithoutAddressesUntilAPodIsReady(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		service := &headlessService{pods: map[string]*node{}}
		f := newFleet(t)
		f.alter = func(e *outside.World) { e.Resolve, e.Kubernetes = service.resolve, true }
		config := func(i int) mortise.Config {
			c := f.config(i, 3)
			c.Join = []string{"dns:///orders.example:7947"}
			return c
		}
		for i := range 3 {
			service.set(host(i), nil)
			service.set(host(i), f.start(i, config(i)))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		if _, err := f.nodes[0].Lock(ctx, "k"); err == nil ||
			!strings.Contains(err.Error(), "publishNotReadyAddresses: true") {
			t.Errorf("a call that waits in vain says %v, which does not name the way out", err)
		}
		for i, n := range f.nodes {
			if s := n.Status(); s.Group != "" ||
				!strings.Contains(s.Waiting, "dns:///orders.example:7947 has no addresses yet") {
				t.Errorf("node %d: group %q, waits for %q", i, s.Group, s.Waiting)
			}
		}

		service.mu.Lock()
		service.publish = true
		service.mu.Unlock()
		f.ready()
		unlock(t, f.lock(1, "k"))
		group := f.nodes[1].Status().Group

		// A pod ends and returns at another address, which is not listed until the pod is ready.
		service.mu.Lock()
		service.publish = false
		delete(service.pods, host(2))
		service.mu.Unlock()
		f.crash(2)
		c := config(6)
		c.Name = "node-2"
		service.set(host(6), f.start(6, c))
		f.ready()
		unlock(t, f.lock(6, "k"))
		for i, n := range f.nodes {
			if n != nil && n.Status().Group != group {
				t.Errorf("node %d is in group %s, want %s", i, n.Status().Group, group)
			}
		}
	})
}

// TestAFunctionInPlaceOfJoin finds the other instances only by JoinFunc, which sometimes panics.
func TestAFunctionInPlaceOfJoin(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t)
		for i := range 3 {
			c := f.config(i, 3)
			c.Join = nil
			calls := 0 // not atomic, because there are never two calls at a time
			c.JoinFunc = func(context.Context) ([]string, error) {
				if calls++; calls%2 == 1 {
					panic(fmt.Sprint("call ", calls))
				}
				return []string{address(0), address(1), address(2)}, nil
			}
			f.start(i, c)
		}
		f.ready()
		unlock(t, f.lock(2, "k"))
	})
}
