package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

const (
	lookEvery = time.Second // the shortest time between two checks of the files
	maxFile   = 1 << 20     // a file with more bytes is refused
)

// FilesConfig names the PEM files of [FromFiles]. FromFiles copies it.
type FilesConfig struct {
	// CertFile is this node's certificate, followed by any intermediate certificates.
	CertFile string
	KeyFile  string
	CAFile   string           // authorities of the instances' certificates
	Names    Names            // names of the peers that are accepted
	Logger   *slog.Logger     // gets a line for each new or unusable set of files; nil means no log
	Now      func() time.Time // wall clock, safe for concurrent use; nil means time.Now
}

// FromFiles reads a certificate, its key and the authorities, and reads them again when their
// modification time, size or identity changes. It checks this when a connection is made, at most
// once a second. An unusable set of files is logged once, and the last usable set stays in use.
// FromFiles fails if the first set is unusable.
func FromFiles(cfg FilesConfig) (*Source, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	listed, wrong := newNames(cfg.Names, "")
	f := &files{config: cfg, names: listed, looked: cfg.Now().Round(0)}
	var err error
	if f.stats, err = f.stat(); err == nil {
		f.current, err = f.read()
	}
	if err != nil {
		err = fmt.Errorf("Config.TLS: %w", err)
	}
	if err := errors.Join(wrong, err); err != nil {
		return nil, err
	}
	return &Source{
		client: func() *tls.Config { return f.dialing(f.latest()) },
		server: func() *tls.Config {
			config := f.accepting(f.latest())
			config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config,
				error) {
				return f.accepting(f.latest()), nil
			}
			return config
		},
		checker: f,
		about:   fmt.Sprintf("TLS from the files %s, %s and %s", cfg.CertFile, cfg.KeyFile, cfg.CAFile),
	}, nil
}

func (f *files) with(set *material) *tls.Config {
	return harden(&tls.Config{
		Time: f.config.Now, RootCAs: set.authorities, ClientCAs: set.authorities,
		GetCertificate:       func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return set.pair, nil },
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return set.pair, nil },
	})
}

func (f *files) accepting(set *material) *tls.Config {
	config := f.with(set)
	config.VerifyConnection = f.names.accepts(nil)
	return config
}

func (f *files) dialing(set *material) *tls.Config {
	config := f.with(set)
	f.names.dials(config, f.config.Now)
	return config
}

func (f *files) peer(state tls.ConnectionState) (Peer, error) {
	return f.names.peer(state, f.latest().authorities, f.config.Now())
}

func (f *files) recheck(state tls.ConnectionState) error {
	state.VerifiedChains = nil // the current authorities and time must be used
	_, err := f.peer(state)
	return err
}

func (f *files) own() (Peer, error) { return f.names.find(f.latest().pair.Leaf) }

type material struct {
	pair        *tls.Certificate
	authorities *x509.CertPool
}

type files struct {
	config FilesConfig
	names  *names

	mu       sync.Mutex // guards the fields below; never held while files are checked
	current  *material
	looked   time.Time
	looking  bool           // a goroutine checks the files; only this goroutine uses the fields below
	stats    [3]os.FileInfo // state of the files just before the last successful read
	failed   bool           // the last check failed, so the next one reads even unchanged files
	reported string         // failure that was reported last
}

// latest returns the set of files to use now. If a check is due, only one caller waits for it.
func (f *files) latest() *material {
	now := f.config.Now().Round(0)
	f.mu.Lock()
	if age := now.Sub(f.looked); f.looking || age >= 0 && age < lookEvery {
		defer f.mu.Unlock()
		return f.current
	}
	f.looked, f.looking = now, true
	f.mu.Unlock()
	found := f.look()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looking = false
	if found != nil {
		f.current = found
	}
	return f.current
}

// look returns a new set of files, or nil if there is none. It logs a new failure. The caller must
// have set f.looking.
func (f *files) look() *material {
	stats, err := f.stat()
	if err == nil {
		if !f.failed && same(f.stats, stats) {
			return nil
		}
		var found *material
		if found, err = f.read(); err == nil {
			f.stats, f.failed, f.reported = stats, false, ""
			f.config.Logger.Info("credentials: the certificate files have changed and are in use",
				"file", f.config.CertFile, "until", found.pair.Leaf.NotAfter)
			return found
		}
	}
	f.failed = true
	if text := err.Error(); text != f.reported {
		f.reported = text
		f.config.Logger.Warn("credentials: the certificate files cannot be used; the ones read before stay in "+
			"use until this is fixed", "error", err)
	}
	return nil
}

func (f *files) paths() [3]string {
	return [3]string{f.config.CertFile, f.config.KeyFile, f.config.CAFile}
}

// stat refuses a file that is not regular, because reading such a file might never end.
func (f *files) stat() (stats [3]os.FileInfo, err error) {
	for i, name := range f.paths() {
		info, err := os.Stat(name)
		switch {
		case err != nil:
			return stats, err
		case !info.Mode().IsRegular():
			return stats, fmt.Errorf("%s is not a regular file", name)
		case info.Size() > maxFile:
			return stats, fmt.Errorf("%s has more than %d bytes", name, maxFile)
		}
		stats[i] = info
	}
	return stats, nil
}

func same(a, b [3]os.FileInfo) bool {
	for i := range a {
		if !a[i].ModTime().Equal(b[i].ModTime()) || a[i].Size() != b[i].Size() || !os.SameFile(a[i], b[i]) {
			return false
		}
	}
	return true
}

func (f *files) read() (*material, error) {
	var text [3][]byte
	for i, name := range f.paths() {
		var err error
		if text[i], err = os.ReadFile(name); err != nil {
			return nil, err
		}
	}
	pair, err := tls.X509KeyPair(text[0], text[1])
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", f.config.CertFile, f.config.KeyFile, err)
	}
	if pair.Leaf == nil {
		return nil, errors.Join(errors.ErrUnsupported, fmt.Errorf("%s: GODEBUG x509keypairleaf=0 is set",
			f.config.CertFile))
	}
	if err := checkUsage(&pair); err != nil {
		return nil, fmt.Errorf("%s: %w", f.config.CertFile, err)
	}
	authorities, err := parseAuthorities(text[2])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.config.CAFile, err)
	}
	return &material{pair: &pair, authorities: authorities}, nil
}
