package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/internal/plain"
)

// files contains the page, its style and its script. A browser gets all three in one response. So
// the page does not need to know its own path, and the policy can allow exactly this style and this
// script, by their hashes.
//
//go:embed page.html page.css page.js
var files embed.FS

func parsePage() (*template.Template, string) {
	read := func(name string) string {
		text, err := files.ReadFile(name)
		if err != nil {
			panic(err) // cannot happen: the files are embedded
		}
		return string(text)
	}
	style, script := read("page.css"), read("page.js")
	sum := func(text string) string {
		s := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(s[:]) + "'"
	}
	page := template.Must(template.New("page").Funcs(template.FuncMap{
		"style":  func() template.CSS { return template.CSS(style) },
		"script": func() template.JS { return template.JS(script) },
		"shown":  plain.Text, "brief": func(text string) string { return clip(plain.Text(text), briefly) },
		"span": func(s float64) string { return span(seconds(s)) }, "number": number, "draw": draw,
		"data":    func(data []byte) []string { return strings.Split(clip(string(data), dataShown), "\n") },
		"clock":   func(t time.Time) string { return t.UTC().Format("15:04:05") },
		"stamp":   func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"ago":     func(now, then time.Time) string { return span(now.Sub(then)) },
		"rest":    func(all locks) int { return all.Looked - all.Ticks - len(all.Keys) },
		"clauses": clauses,
		"inc":     func(i int) int { return i + 1 },
		"dec":     func(i int) int { return i - 1 },
	}).Parse(read("page.html")))
	return page, "default-src 'none'; style-src " + sum(style) + "; script-src " + sum(script) +
		"; img-src data:; connect-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}

const dataShown = 1000

type shownPage struct {
	*view
	List     locks // the keys that the search has found, or all keys without a search
	Trees    []tree
	Without  int
	MayForce bool
	Outcome  *outcome
	Prefix   string // of the search, like Holder and Age as the viewer has written them
	Holder   string
	Age      string
	Filter   filter
	KeyName  string
}

func (h *handler) servePage(w http.ResponseWriter, r *http.Request) {
	var done *outcome
	code := http.StatusOK
	may := h.options.MayForce != nil && h.options.MayForce(r)
	if r.Method == http.MethodPost {
		done = h.force(w, r, may)
		code = done.code
	}
	q := r.URL.Query()
	v := h.view(r.Context(), q)
	page := shownPage{
		view: v, List: v.Locks, Trees: v.forest, Without: v.without, MayForce: may && !v.Stale, Outcome: done,
		Prefix: q.Get("prefix"), Holder: q.Get("holder"), Age: q.Get("age"), Filter: filterOf(q),
		KeyName: q.Get("key"),
	}
	if v.Search != nil {
		page.List = *v.Search
	}
	var body bytes.Buffer // so that the page is sent completely or not at all
	if err := h.page.Execute(&body, page); err != nil {
		http.Error(w, "the page could not be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", h.policy)
	w.WriteHeader(code)
	_, _ = w.Write(body.Bytes())
}

func (h *handler) serveJSON(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	body, err := json.MarshalIndent(h.view(r.Context(), q), "", "  ")
	if err != nil {
		http.Error(w, "the status could not be written: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, '\n'))
}

// view queries the leader and returns the view. If the query for all keys fails, view sends no
// further queries.
func (h *handler) view(ctx context.Context, query url.Values) *view {
	key, after, f := query.Get("key"), query.Get("after"), filterOf(query)
	waiting, cancel := context.WithTimeout(ctx, turnWithin)
	defer cancel()
	s := scene{long: h.options.Long, filter: f, link: h.options.Console, program: h.program,
		all: h.answerTo(waiting, question{})}
	s.found = h.found(waiting, s.all, f)
	if plausible(key) {
		is := func(k string) bool { return k == key }
		if s.one = s.all.those(is); s.all.err == nil {
			s.one = h.answerTo(waiting, question{key: key})
		}
	}
	if plausibleSession(after) {
		if s.after, s.others = after, s.all; s.all.err == nil {
			s.others = h.answerTo(waiting, question{after: after})
		}
	}
	s.status, s.now = h.node.Status(), time.Now()
	s.past = h.options.History.past(s.now)
	return s.view()
}

// found returns the keys among which the filter selects, or nil if the viewer does not search.
func (h *handler) found(waiting context.Context, all *answer, f filter) *answer {
	switch {
	case !f.any():
		return nil
	case f.prefix == "":
		return all
	case all.err != nil:
		return all.those(func(k string) bool { return strings.HasPrefix(k, f.prefix) })
	}
	return h.answerTo(waiting, question{prefix: f.prefix, wide: f.narrows()})
}

func plausibleSession(text string) bool {
	_, err := strconv.ParseUint(text, 10, 64)
	return err == nil
}
