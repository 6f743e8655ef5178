package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/limits"
)

// The leases of the agent are given back in whatever way they end.
func TestLeasesAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := newLeases(nil)
		defer ls.close()
		const client = 1
		open := func(ttl time.Duration, end func(l *lease)) func() (func(), error) {
			return func() (func(), error) {
				l, err := ls.open(client, "", ttl)
				return func() { end(l) }, err
			}
		}
		limits.GivenBack(t, limits.Places{
			Limit: maxLeases / 2, // what one client has at most
			Used:  func() int { return ls.places.taken },
			Endings: map[string]func() (func(), error){
				"ended": open(maxLeaseTTL, func(l *lease) { ls.drop(l.id, "") }),
				"ended twice": open(maxLeaseTTL, func(l *lease) {
					ls.drop(l.id, "")
					ls.drop(l.id, "again")
				}),
				"cut off": open(0, func(l *lease) { ls.drop(l.id, l.lost("closed its connection")) }),
				"expired": open(leaseTTLMin, func(l *lease) {
					if _, err := ls.find(nil, l.id); err == nil {
						time.Sleep(leaseTTLMin)
						synctest.Wait()
					}
				}),
				"kept, and expired": open(leaseTTLMin, func(l *lease) {
					_, _, _ = ls.keep(nil, l.id)
					if _, err := ls.find(nil, l.id); err == nil {
						time.Sleep(2 * leaseTTLMin)
						synctest.Wait()
					}
				}),
			},
		})
		if len(ls.places.each) != 0 || len(ls.all) != 0 {
			t.Errorf("%d clients and %d leases are left", len(ls.places.each), len(ls.all))
		}
	})
}
