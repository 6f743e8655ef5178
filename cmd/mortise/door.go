package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/console"
	"github.com/mortise-lock/mortise/internal/credentials"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/tofu"
)

// This file is the HTTP API of an agent, called the door in this package. Its JSON has the form
// that dialect.go describes. It also serves the page of package console, without forced unlocks,
// and the metrics for Prometheus.

const (
	maxName     = 256
	lostLook    = 100 * time.Millisecond // interval between two checks of a held lease
	stillAlive  = 5 * time.Second        // interval between two lines that contain only {}
	unlockAsked = 5 * time.Second
)

type door struct {
	node     *mortise.Node
	leases   *leases
	programs *programs
	tokens   tokens
	entry    *entry
	meter    *meter
	page     console.Options // without Hosts
	try      string          // the directory of the simulation page; empty means none
	puts     madePuts        // of clients without a derived secret
}

// handler returns the HTTP handler of the API. local means that the listener is a socket in the
// file system, whose permissions decide which users may open it.
func (d *door) handler(local bool) http.Handler {
	mux := http.NewServeMux()
	post := func(path string, do func(*http.Request, asked) (any, error)) {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			a, err := read(w, r)
			if err == nil {
				var v any
				if v, err = do(r, a); err == nil {
					say(w, http.StatusOK, v)
					return
				}
			}
			refuse(w, err)
		})
	}
	post("/v1/leases", d.open)
	post("/v1/keepalive", d.keepalive)
	post("/v1/end", d.end)
	post("/v1/lock", d.lock)
	post("/v1/unlock", d.unlock)
	post("/v1/downgrade", d.downgrade)
	post("/v1/upgrade", d.upgrade)
	post("/v1/beat", d.beat)
	post("/v1/regain", d.regain)
	post("/v1/detach", d.detach)
	post("/v1/check", d.check)
	post("/v1/value", d.value)
	post("/v1/put", d.put)
	post("/v1/ids", d.ids)
	mux.HandleFunc("POST /v1/hold", d.hold)
	mux.HandleFunc("GET /v1/watch", d.watch)
	mux.HandleFunc("/v1/tofu", d.tofu)
	get := func(path string, do answers) { getAnswer(mux, path, do) }
	get("/v1/keys", d.keys)
	get("/v1/data", func(ctx context.Context, r *http.Request) (any, error) {
		return dataOf(ctx, d.from(r), r.FormValue("key"))
	})
	get("/v1/leader", func(ctx context.Context, r *http.Request) (any, error) {
		return leaderOf(ctx, d.from(r), r.FormValue("name"))
	})
	get("/v1/openapi.json", description)
	get("/v1/key", func(ctx context.Context, r *http.Request) (any, error) {
		return d.from(r).key(ctx, r.FormValue("key"))
	})
	get("/v1/status", func(ctx context.Context, r *http.Request) (any, error) { return d.from(r).status(ctx) })
	get("/v1/health", func(ctx context.Context, r *http.Request) (any, error) { return d.from(r).health(ctx) })
	d.probes(mux)
	d.show(mux, d.page)
	own := []string{pagePath}
	if d.try != "" {
		own = append(own, tryPath)
		mux.Handle("GET "+tryPath, forAgent(http.StripPrefix(tryPath, http.FileServer(http.Dir(d.try)))))
	}
	return d.guard(routes(mux), local, own...)
}

// observer returns the handler of -observe: the metrics, the page, /healthz and /readyz. If the
// agent has tokens, every request must contain a token, and the Host header may contain any name.
func (d *door) observer(local, tokens bool) http.Handler {
	mux := http.NewServeMux()
	options := d.page
	if tokens {
		options.Hosts = []string{"*"}
	}
	d.show(mux, options)
	d.probes(mux)
	return d.guard(routes(mux), local || tokens, pagePath)
}

// show adds the metrics and the page to mux. They show the whole group, so programs with a derived
// secret cannot read them.
func (d *door) show(mux *http.ServeMux, options console.Options) {
	page := http.StripPrefix(strings.TrimSuffix(pagePath, "/"), console.New(d.node, options))
	mux.Handle("GET "+pagePath, forAgent(page))
	mux.Handle("GET /metrics", forAgent(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		d.meter.write(w, d.node.Status())
	})))
}

func forAgent(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if programOf(r) != nil {
			refuse(w, fmt.Errorf("%w: it cannot see the agent's metrics or its page", errNotForPrograms))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// routes answers a request that has no route as all other errors are answered.
func routes(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		none := noAnswer{header: w.Header()}
		h.ServeHTTP(&none, r)
		w.Header().Del("X-Content-Type-Options")
		w.Header().Del("Content-Length")
		switch allowed := w.Header().Get("Allow"); none.code {
		case http.StatusMethodNotAllowed:
			refuse(w, fmt.Errorf("%w %s: use %s", errNoMethod, r.Method, allowed))
		case http.StatusNotFound:
			refuse(w, errNoPath)
		default: // the path is written in another way
			mux.ServeHTTP(w, r)
		}
	})
}

// noAnswer keeps only the status and the header of an answer.
type noAnswer struct {
	header http.Header
	code   int
}

func (u *noAnswer) Header() http.Header         { return u.header }
func (u *noAnswer) Write(p []byte) (int, error) { return len(p), nil }
func (u *noAnswer) WriteHeader(code int)        { u.code = code }

type answers func(context.Context, *http.Request) (any, error)

func getAnswer(mux *http.ServeMux, path string, do answers) {
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), answerSoon)
		defer cancel()
		if v, err := do(ctx, r); err != nil {
			refuse(w, err)
		} else {
			say(w, http.StatusOK, v)
		}
	})
}

func (d *door) probes(mux *http.ServeMux) {
	getAnswer(mux, "/readyz", func(ctx context.Context, r *http.Request) (any, error) {
		return struct{}{},
			d.from(r).ready(ctx)
	})
	getAnswer(mux, "/healthz", func(context.Context, *http.Request) (any, error) { return struct{}{}, d.node.Err() })
}

func (d *door) from(r *http.Request) asks { return d.leases.from(programOf(r)) }

// client returns the key under which the leases of a client are counted: its derived secret, its
// token, or else the user of its connection.
func (d *door) client(r *http.Request) any {
	if p := programOf(r); p != nil {
		return p
	}
	if number := d.tokens.which(r); number > 0 {
		return number
	}
	return userOfConn(r)
}

// guard rejects requests from web pages other than the agent's own pages, because any page can make
// a browser send requests to an address of this machine. own are the paths of the pages that next
// serves. With anyHost, the Host header may contain any name.
func (d *door) guard(next http.Handler, anyHost bool, own ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		ip := net.ParseIP(strings.Trim(host, "[]"))
		shown, _ := bearer(r)
		no := func(code int, kind, text string) {
			d.entry.refuse(w, r, func() { say(w, code, problem{text, kind, nil}) })
		}
		switch {
		case fromPage(r, own):
			no(http.StatusForbidden, "forbidden", "requests of web pages are refused, except those of this "+
				"agent's own page")
		case !anyHost && host != "localhost" && (ip == nil || !ip.IsLoopback()):
			no(http.StatusForbidden, "forbidden", "use a loopback address or localhost, not "+strconv.Quote(r.Host))
		case r.URL.Path == "/healthz":
			next.ServeHTTP(w, r)
		case credentials.IsDerived(shown):
			d.admit(w, r, shown, next)
		case d.tokens != nil && d.tokens.which(r) == 0:
			challenge(w, r)
			no(http.StatusUnauthorized, "no token", "send one of this agent's tokens, or a derived secret: "+
				"Authorization: Bearer TOKEN")
		case d.tokens == nil && r.Header.Get("Authorization") != "":
			// A request with a misspelt derived secret must not get the agent's own rights.
			w.Header().Set("WWW-Authenticate", "Bearer")
			no(http.StatusUnauthorized, "no token", "this agent has no tokens: send a derived secret "+
				"(Authorization: Bearer msd1_...), or no Authorization")
		default:
			d.entry.admit(w, r, d.client(r), next.ServeHTTP)
		}
	})
}

// admit admits a request with a derived secret. Until the secret is known to be one of this
// cluster's, the request is that of a stranger.
func (d *door) admit(w http.ResponseWriter, r *http.Request, secret string, next http.Handler) {
	sum, err := d.programs.check(secret)
	if err != nil {
		d.entry.refuse(w, r, func() { d.entry.strangers.refuse(w, err) })
		return
	}
	d.entry.admit(w, r, sum, func(w http.ResponseWriter, r *http.Request) {
		p, err := d.programs.enter(r.Context(), sum, secret)
		if err != nil {
			refuse(w, err)
			return
		}
		defer d.programs.leave(p)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), programKey{}, p)))
	})
}

func (d *door) open(r *http.Request, a asked) (any, error) {
	ttl, err := ttlOf(a)
	if err != nil {
		return nil, err
	}
	if err := checkName(a.Name); err != nil {
		return nil, err
	}
	l, err := d.leases.open(d.client(r), a.Name, ttl)
	if err != nil {
		return nil, err
	}
	return map[string]any{"lease": l.id, "ttl_seconds": ttl}, nil
}

func ttlOf(a asked) (time.Duration, error) {
	ttl, err := span("ttl_seconds", a.TTL, leaseTTL)
	if err == nil && (ttl < leaseTTLMin || ttl > maxLeaseTTL) {
		err = bad("ttl %v is not between %v and %v", ttl, leaseTTLMin, maxLeaseTTL)
	}
	return ttl, err
}

func checkName(name string) error {
	if len(name) > maxName || !plain.Is(name) {
		return bad("name %q has more than %d bytes, or %s", name, maxName, plain.NotText)
	}
	return nil
}

func (d *door) keepalive(r *http.Request, a asked) (any, error) {
	l, held, err := d.leases.keep(programOf(r), a.Lease)
	if err != nil {
		return nil, err
	}
	return map[string]any{"ttl_seconds": l.ttl, "locks": append([]lockText{}, held...)}, nil
}

func (d *door) end(r *http.Request, a asked) (any, error) {
	if _, err := d.leases.find(programOf(r), a.Lease); err != nil || !d.leases.drop(a.Lease, "") {
		return nil, errNoLease
	}
	return struct{}{}, nil
}

func (d *door) lock(r *http.Request, a asked) (any, error) {
	l, err := d.leases.find(programOf(r), a.Lease)
	if err != nil {
		return nil, err
	}
	request, err := a.wish()
	if err != nil {
		return nil, err
	}
	if request.Value == "" && !a.Sticky && a.Resume == 0 { // a resumed hold keeps its value
		request.Value = l.name
	}
	if request.MaxHold, err = span("max_hold_seconds", a.MaxHold, 0); err != nil {
		return nil, err
	}
	if request.MaxIdle, err = span("max_idle_seconds", a.MaxIdle, 0); err != nil {
		return nil, err
	}
	if request.LockDelay, err = span("lock_delay_seconds", a.LockDelay, 0); err != nil {
		return nil, err
	}
	if request.JeopardyGrace, err = span("jeopardy_grace_seconds", a.Grace, 0); err != nil {
		return nil, err
	}
	ctx, err := withRequest(r, a)
	if err != nil {
		return nil, err
	}
	if a.Wait != nil {
		wait, err := span("wait_seconds", a.Wait, 0)
		if err != nil {
			return nil, err
		}
		if request.Try = wait == 0; request.Try {
			wait = 3 * time.Second // for the answer of the leader
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	lock, err := d.leases.acquire(ctx, programOf(r), a.Lease, request)
	if err != nil {
		return nil, err
	}
	return lockText{Key: lock.Key(), Token: lock.Token()}, nil
}

// unlock releases a lock. With the ID of a request it gives up the request, whether it has a lock
// or still waits, so it succeeds if there is none.
func (d *door) unlock(r *http.Request, a asked) (any, error) {
	ctx, cancel := context.WithTimeout(r.Context(), unlockAsked)
	defer cancel()
	if a.Request != "" {
		token, err := d.leases.giveUp(ctx, programOf(r), a.Lease, a.Request)
		if err != nil || token == 0 {
			return struct{}{}, err
		}
		a.Token = token
	}
	return struct{}{}, d.leases.release(ctx, programOf(r), a.Lease, a.Token, holding.Unlock)
}

// detach gives up a lock, which stays taken for its lock_delay_seconds.
func (d *door) detach(r *http.Request, a asked) (any, error) {
	ctx, cancel := context.WithTimeout(r.Context(), unlockAsked)
	defer cancel()
	return struct{}{}, d.leases.release(ctx, programOf(r), a.Lease, a.Token, holding.Detach)
}

func (d *door) downgrade(r *http.Request, a asked) (any, error) {
	lock, err := d.leases.lock(programOf(r), a.Lease, a.Token)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), unlockAsked)
	defer cancel()
	return struct{}{}, lock.Downgrade(ctx)
}

// upgrade makes an upgradable lock exclusive. The upgrade is a lock of its own, of the same lease.
func (d *door) upgrade(r *http.Request, a asked) (any, error) {
	lock, err := d.leases.lock(programOf(r), a.Lease, a.Token)
	if err != nil {
		return nil, err
	}
	ctx, err := withRequest(r, a)
	if err != nil {
		return nil, err
	}
	if a.Wait != nil {
		wait, err := span("wait_seconds", a.Wait, 0)
		if err == nil && wait == 0 {
			err = bad("wait_seconds is 0, but an upgrade waits for all readers: give a longer time, or none")
		}
		if err != nil {
			return nil, err
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	up, err := d.leases.take(ctx, programOf(r), a.Lease, func(ctx context.Context) (holding, error) {
		return upgraded(ctx, lock)
	})
	if err != nil {
		return nil, err
	}
	return lockText{Key: up.Key(), Token: up.Token()}, nil
}

// beat reports that the work under one lock moves. It does not beat for a whole lease, because
// other threads of its client can hang.
func (d *door) beat(r *http.Request, a asked) (any, error) {
	lock, err := d.leases.lock(programOf(r), a.Lease, a.Token)
	if err != nil {
		return nil, err
	}
	lock.Beat()
	return struct{}{}, lock.Err()
}

// regain waits until a lock in doubt is good again or lost.
func (d *door) regain(r *http.Request, a asked) (any, error) {
	ctx := r.Context()
	if a.Wait != nil {
		wait, err := span("wait_seconds", a.Wait, 0)
		if err != nil {
			return nil, err
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	return d.leases.regain(ctx, programOf(r), a.Lease, a.Token)
}

// put changes data. If a lease is given, put changes it only while that lock is held.
func (d *door) put(r *http.Request, a asked) (any, error) {
	asks, err := withRequest(r, a)
	if err != nil {
		return nil, err
	}
	known := &d.puts
	if p := programOf(r); p != nil {
		known = &p.puts
	}
	q := requestOf(asks)
	revision, err := known.once(asks, q.id, q.sum, func() (uint64, error) {
		ctx := r.Context()
		if q.id != "" {
			ctx = context.WithoutCancel(ctx) // its client may ask again
		}
		ctx, cancel := context.WithTimeout(ctx, unlockAsked)
		defer cancel()
		return d.change(ctx, r, a)
	})
	return dataShown{Key: a.Key, Revision: revision}, err
}

func (d *door) change(ctx context.Context, r *http.Request, a asked) (uint64, error) {
	if a.Lease == "" {
		return d.from(r).put(ctx, a.Key, a.Data, a.Revision)
	}
	lock, err := d.leases.lock(programOf(r), a.Lease, a.Token)
	if err != nil {
		return 0, err
	}
	return lock.Put(ctx, a.Key, a.Data, a.Revision)
}

// ids returns unique, rising IDs.
func (d *door) ids(r *http.Request, a asked) (any, error) {
	ctx, cancel := context.WithTimeout(r.Context(), unlockAsked)
	defer cancel()
	count := cmp.Or(a.Count, 1)
	first, err := d.from(r).ids(ctx, count)
	return idsShown{first, count}, err
}

type idsShown struct {
	First uint64 `json:"first,string"`
	Count int    `json:"count"`
}

func (d *door) value(r *http.Request, a asked) (any, error) {
	lock, err := d.leases.lock(programOf(r), a.Lease, a.Token)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), unlockAsked)
	defer cancel()
	return struct{}{}, lock.SetValue(ctx, a.Value)
}

type checked struct {
	Held  bool `json:"held"`
	Doubt bool `json:"in_doubt,omitempty"`
}

// check reports whether a lock is held. To check a lock of a lease, it uses this agent's clock, as
// Lock.Err does. To check a key, it queries the leader.
func (d *door) check(r *http.Request, a asked) (any, error) {
	if a.Lease != "" {
		lock, err := d.leases.lock(programOf(r), a.Lease, a.Token)
		if err != nil {
			return nil, err
		}
		err = lock.Err()
		return checked{err == nil, errors.Is(err, mortise.ErrInJeopardy)}, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerSoon)
	defer cancel()
	held, err := d.from(r).check(ctx, a.Key, a.Token)
	return checked{Held: held}, err
}

// hold opens a lease that exists as long as the client keeps the connection. The response contains
// a line for the lease, a line for each lock that is lost, wanted, in doubt or good again, and a
// line with the empty object {} every few seconds. If the request is quiet, it contains only the
// line for the lease.
func (d *door) hold(w http.ResponseWriter, r *http.Request) {
	a, err := read(w, r)
	if err != nil {
		refuse(w, err)
		return
	}
	if err = checkName(a.Name); err != nil {
		refuse(w, err)
		return
	}
	l, err := d.leases.open(d.client(r), a.Name, 0)
	if err != nil {
		refuse(w, err)
		return
	}
	defer func() { d.leases.drop(l.id, l.lost("closed its connection, or died")) }()
	w.Header().Set("Content-Type", "application/x-ndjson")
	line := lines(w)
	if !line(map[string]string{"lease": l.id}) {
		return
	}
	if a.Quiet { // a client that does not read would fill its socket, and lose the lease
		select {
		case <-r.Context().Done():
		case <-l.ctx.Done():
		}
		return
	}
	told := map[mortise.Token]lockText{}
	look, alive := time.NewTicker(lostLook), time.NewTicker(stillAlive)
	defer look.Stop()
	defer alive.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-l.ctx.Done():
			return
		case <-alive.C:
			if !line(struct{}{}) {
				return
			}
		case <-look.C:
			for _, news := range d.leases.news(l, told) {
				if !line(news) {
					return
				}
			}
		}
	}
}

func (d *door) watch(w http.ResponseWriter, r *http.Request) {
	after, err := strconv.ParseUint(cmp.Or(r.FormValue("after"), "0"), 10, 64)
	if err != nil {
		refuse(w, bad("after is %q, want the position of an earlier event", r.FormValue("after")))
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(d.leases.ctx, cancel)()
	w.Header().Set("Content-Type", "application/x-ndjson")
	line := lines(w)
	told := false
	for e, err := range d.from(r).watch(ctx, r.FormValue("prefix"), after) {
		if err != nil && !told {
			refuse(w, err)
		}
		told = true
		if err != nil || !line(happenedOf(e)) {
			return
		}
	}
}

func (d *door) keys(ctx context.Context, r *http.Request) (any, error) {
	list, more, err := d.from(r).keys(ctx, r.FormValue("prefix"))
	return map[string]any{"keys": append([]mortise.KeyInfo{}, list...), "more": more}, err
}

func (d *door) tofu(w http.ResponseWriter, r *http.Request) {
	tofu.Serve(w, r, tofuLocks{d.leases, programOf(r), d.client(r)}, refuse)
}
