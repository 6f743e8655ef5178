//go:build unix

package main

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/mortisetest"
)

// TestALockLastsAsLongAsItsProgramBeats has locks with max_idle_seconds in one lease. One gets
// beats, one gets changes of its value, which count as beats, and one gets nothing and is lost,
// whatever its lease does for the others.
func TestALockLastsAsLongAsItsProgramBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mortisetest.NewWith(t, 3, mortisetest.Options{MayHold: true})
		c.Ready()
		b := newBench(t, c.Node(0))
		_, opened := b.post("/v1/leases", object{"ttl_seconds": 600})
		lease := opened["lease"]
		lock := func(body object) any {
			t.Helper()
			body["lease"] = lease
			code, said := b.post("/v1/lock", body)
			if code != http.StatusOK {
				t.Fatalf("%v: %d %v", body, code, said)
			}
			return said["token"]
		}
		is := func(path string, token any, want int, kind any) {
			t.Helper()
			code, said := b.post(path, object{"lease": lease, "token": token})
			if code != want || said["kind"] != kind {
				t.Errorf("%s: %d %v, want %d %v", path, code, said, want, kind)
			}
		}
		held := func(token any) bool {
			t.Helper()
			_, said := b.post("/v1/check", object{"lease": lease, "token": token})
			return said["held"] == true
		}
		beats := lock(object{"key": "beats", "max_idle_seconds": 10})
		value := lock(object{"key": "value", "max_idle_seconds": 10})
		hangs := lock(object{"key": "hangs", "max_idle_seconds": 10, "lock_delay_seconds": 60})
		plain := lock(object{"key": "plain"})
		is("/v1/beat", plain, http.StatusOK, nil) // without effect
		for range 5 {
			time.Sleep(7 * time.Second) // fake time
			is("/v1/beat", beats, http.StatusOK, nil)
			b.post("/v1/value", object{"lease": lease, "token": value, "value": "moves"})
			b.post("/v1/keepalive", object{"lease": lease})
		}
		if !held(beats) || !held(value) || !held(plain) {
			t.Error("a lock is lost although its work moves")
		}
		is("/v1/beat", hangs, http.StatusNotFound, "no lock") // a keepalive has reported the loss
		if code, said := b.post("/v1/lock", object{"lease": lease, "key": "hangs", "wait_seconds": 0}); code !=
			http.StatusConflict {
			t.Errorf("the lock delay of a hold that hung: %d %v", code, said)
		}
		time.Sleep(13 * time.Second) // fake time
		if held(beats) {
			t.Error("a lock is held 13 s after its last beat, with 10 s")
		}
		code, said := b.post("/v1/beat", object{"lease": lease, "token": beats})
		if text, _ := said["error"].(string); code != http.StatusGone || said["kind"] != "lost" ||
			!strings.Contains(text, "has not called /v1/beat") {
			t.Errorf("a beat of a lost lock: %d %v", code, said)
		}
		lock(object{"key": "beats", "wait_seconds": 0})

		later := lock(object{"key": "later", "lock_delay_seconds": 60})
		is("/v1/detach", later, http.StatusOK, nil)
		resumed := lock(object{"key": "later", "resume": later, "max_idle_seconds": 10})
		time.Sleep(13 * time.Second) // fake time
		is("/v1/beat", resumed, http.StatusGone, "lost")
		for _, wrong := range []float64{-1, 0.05} {
			code, said := b.post("/v1/lock", object{"lease": lease, "key": "k", "max_idle_seconds": wrong})
			if text, _ := said["error"].(string); code != http.StatusBadRequest || !strings.Contains(text, "max_idle_seconds") {
				t.Errorf("%v: %d %v", wrong, code, said)
			}
		}
	})
}

// TestABeatInDoubt beats for a lock in doubt: the beat counts, and the answer is that the lock is
// in doubt.
func TestABeatInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mortisetest.NewWith(t, 3, mortisetest.Options{MayHold: true})
		c.Ready()
		b := newBench(t, c.Node(0))
		_, opened := b.post("/v1/leases", object{"ttl_seconds": 600})
		lease := opened["lease"]
		_, mine := b.post("/v1/lock", object{"lease": lease, "key": "k", "max_idle_seconds": 60,
			"jeopardy_grace_seconds": 300})
		with := object{"lease": lease, "token": mine["token"]}
		cutAll(c)
		for range 3 {
			time.Sleep(40 * time.Second) // fake time
			if code, said := b.post("/v1/beat", with); code != http.StatusConflict || said["kind"] != "in doubt" {
				t.Fatalf("a beat in doubt: %d %v", code, said)
			}
		}
		c.Heal()
		if code, said := b.post("/v1/regain", with); code != http.StatusOK {
			t.Fatalf("regain: %d %v", code, said)
		}
		if code, said := b.post("/v1/beat", with); code != http.StatusOK {
			t.Errorf("a beat of a good lock: %d %v", code, said)
		}
	})
}
