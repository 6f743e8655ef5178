package mortise

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

const goodSecret = "msk1_a2bfff9c6250151c2086c5b899140b6f977fb1d9f63fc3653490576867a23bdeaa83737c"

const oldSecretA, oldSecretB = "msk1_8b06eff9d884aff3122f597b40e3466123db53891ce2e1a68c79c6caa5f890b828caa9a0",
	"msk1_fce38e2945acdb01a2ca7c0c20c34be2f27fa601311077694fe6df60ff5e074f18f593d1"

func secretFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEveryFieldHasItsVariable(t *testing.T) {
	old := secretFile(t, oldSecretA+"\r\n"+oldSecretB+"\r\n\r\n")
	got, err := configFromEnv("ORDERS_LOCK_", []string{
		"PATH=/bin", "ORDERS_LOCK_NAME=orders-0", "ORDERS_LOCK_CLUSTER=orders", "ORDERS_LOCK_BIND=:7000",
		"ORDERS_LOCK_ADVERTISE=fd00::7",
		"ORDERS_LOCK_JOIN= dns:///orders:7000, srv:///_lock._tcp.orders ,", "ORDERS_LOCK_REPLICAS=5",
		"ORDERS_LOCK_FOUNDERS=orders-0,orders-1",
		"ORDERS_LOCK_VOTERS=5", "ORDERS_LOCK_ZONE=a", "ORDERS_LOCK_DIR=/var/lib/orders", "ORDERS_LOCK_RUN_DIR=/run/orders",
		"ORDERS_LOCK_SESSION_TTL=20s", "ORDERS_LOCK_GRACE=1m",
		"ORDERS_LOCK_MAX_SESSION_BYTES=128MiB", "ORDERS_LOCK_DIR_FREE_BYTES=256MiB",
		"ORDERS_LOCK_MAX_GROUP_BYTES=1073741824", "ORDERS_LOCK_STICKY_LOCKS=100", "ORDERS_LOCK_STICKY_UNUSED=1m",
		"ORDERS_LOCK_MAX_WAITING= orders/=100, a=b/=5 , =65536",
		"ORDERS_LOCK_SECRET_FILE=" + secretFile(t, goodSecret+"\n"), "ORDERS_LOCK_OLD_SECRETS_FILE=" +
			old, "ORDERS_LOCK_INSECURE=true",
		"ORDERS_LOCK_TLS_CERT_FILE=c", "ORDERS_LOCK_TLS_KEY_FILE=k", "ORDERS_LOCK_TLS_CA_FILE=ca",
		"ORDERS_LOCK_TLS_PEERS=a.internal, spiffe://x/y", "ORDERS_LOCK_TLS_GUESTS_FILE=" +
			secretFile(t, "# cron\ncron.internal lock cron/*\nops read *\ncron.internal read cron/*\n"),
		"ORDERS_LOCK_SERVICE_HOST=10.0.0.1", "ORDERS_LOCK_PORT=tcp://10.0.0.1:80",
		"ORDERS_LOCK_PORT_7947_TCP_ADDR=10.0.0.1",
		"ORDERS_LOCK_WEB_SERVICE_PORT_HTTP=80", "ORDERS_LOCKS_X=1",
	})
	want := Config{
		Name: "orders-0", Cluster: "orders", Bind: ":7000", Advertise: "[fd00::7]:7000",
		Join:     []string{"dns:///orders:7000", "srv:///_lock._tcp.orders"},
		Replicas: 5, Founders: []string{"orders-0", "orders-1"}, Voters: 5, Zone: "a", Dir: "/var/lib/orders",
		RunDir: "/run/orders", SessionTTL: 20 * time.Second, Grace: time.Minute,
		DirFreeBytes: 256 << 20, MaxSessionBytes: 128 << 20, MaxGroupBytes: 1 << 30,
		MaxWaiting:  map[string]int{"orders/": 100, "a=b/": 5, "": 65_536},
		StickyLocks: 100, StickyUnused: time.Minute,
		Secret: goodSecret, OldSecrets: []string{oldSecretA, oldSecretB}, Insecure: true,
		TLSFiles:  TLSFiles{Cert: "c", Key: "k", CA: "ca"},
		TLSPeers:  []string{"a.internal", "spiffe://x/y"},
		TLSGuests: map[string]string{"cron.internal": "lock cron/*\nread cron/*\n", "ops": "read *\n"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\ngot  %+v\nwant %+v", err, got, want)
	}
	// A new field of Config needs a variable, or an entry in the list of fields without one.
	none := []string{"JoinFunc", "TLS", "History", "Hooks", "Logger", "warnings"}
	for i := range reflect.TypeFor[Config]().NumField() {
		name := reflect.TypeFor[Config]().Field(i).Name
		if reflect.ValueOf(want).Field(i).IsZero() != slices.Contains(none, name) {
			t.Errorf("Config.%s has no variable, and is not among those that need none", name)
		}
	}
}

func TestAnEmptyEnvironmentIsTheZeroConfig(t *testing.T) {
	for _, environ := range [][]string{nil, {"X_JOIN=", "X_REPLICAS=", "X_GRACE= ", "X_SECRET_FILE="},
		{"XY=1", "=C:=x", "X"}} {
		if got, err := configFromEnv("X", environ); err != nil || !reflect.DeepEqual(got, Config{}) {
			t.Errorf("%q: %+v, %v", environ, got, err)
		}
	}
	if c, err := configFromEnv("X", []string{"X_GRACE=none", "X_ADVERTISE=10.0.0.1"}); err != nil || c.Grace >= 0 ||
		c.Advertise != "10.0.0.1:7947" {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestEveryMistakeOfTheEnvironmentIsToldAtOnce(t *testing.T) {
	const leak = "hunter2"
	_, err := configFromEnv("X", []string{
		"X_NAME=" + strings.Repeat("n", 200), "X_BIND=nonsense", "X_ADVERTISE=0.0.0.0:1", "X_JOIN=a:1,,dns://b:1,c",
		"X_REPLICAS=three", "X_FOUNDERS=a,a",
		"X_VOTERS=4", "X_SESSION_TTL=10", "X_MAX_SESSION_BYTES=1024", "X_MAX_GROUP_BYTES=2 TB", "X_GRACE=-1s",
		"X_STICKY_UNUSED=1ns", "X_SECRET=" + leak, "X_OLD_SECRETS=" + leak + ",", "X_INSECURE=maybe", "X_TLS_CERT_FILE=c",
		"X_SECERT=" + leak, "X_SESSIONTTL=1s", "X_COLOUR=" + leak, "X_join=a:1",
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, part := range []string{
		"X_NAME: has 200 bytes", `X_BIND: "nonsense"`, "X_ADVERTISE: ", "X_JOIN: part 2 of the list is empty",
		`X_JOIN[1]: "dns://b:1" has two slashes`, "X_JOIN[2]: ",
		`X_MAX_SESSION_BYTES: 1024 is not between`, `X_MAX_GROUP_BYTES: "2 TB" is not a number of bytes`,
		`X_REPLICAS: "three" is not a number`, "X_FOUNDERS: ", "X_VOTERS: 4 ",
		`X_SESSION_TTL: "10" is not a duration: write 10s`, `X_GRACE: "-1s"`,
		"X_STICKY_UNUSED: 1ns is not between",
		"X_SECRET: 7 bytes are too few", "X_OLD_SECRETS[0]: 7 bytes are too few", "X_INSECURE: ",
		"X_TLS_KEY_FILE: is not set", "X_TLS_CA_FILE: is not set",
		"X_SECERT: there is no such setting: is X_SECRET meant?",
		"X_SESSIONTTL: there is no such setting: is X_SESSION_TTL meant?",
		"X_COLOUR: there is no such setting; there are ADVERTISE, BIND,",
		"X_join: there is no such setting: is X_JOIN meant?",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q", part)
		}
	}
	if strings.Contains(err.Error(), leak) || strings.Contains(err.Error(), "Config.") {
		t.Error("the error holds a secret, or speaks of fields")
	}
	if t.Failed() {
		t.Log(err)
	}
}

func TestSecretsFromFiles(t *testing.T) {
	for _, c := range []struct{ what, variables, text, want string }{
		{"no line break", "X_SECRET_FILE=%s", goodSecret, ""},
		{"a line break", "X_SECRET_FILE=%s", goodSecret + "\n", ""},
		{"another line break", "X_SECRET_FILE=%s", goodSecret + "\r\n\n", ""},
		{"an empty file", "X_SECRET_FILE=%s", "\n", "X_SECRET_FILE: %s is empty"},
		{"two lines", "X_SECRET_FILE=%s", goodSecret + "\n" + goodSecret, "X_OLD_SECRETS_FILE"},
		{"too short", "X_SECRET_FILE=%s", "hunter2\n", "X_SECRET_FILE: 7 bytes are too few"},
		{"huge", "X_SECRET_FILE=%s", strings.Repeat(goodSecret, 1<<12), "more than 65536 bytes"},
		{"both", "X_SECRET_FILE=%s X_SECRET=" + goodSecret, goodSecret, "X_SECRET_FILE: is set together with X_SECRET"},
		{"both lists", "X_OLD_SECRETS_FILE=%s X_OLD_SECRETS=" + goodSecret, goodSecret,
			"X_OLD_SECRETS_FILE: is set together with X_OLD_SECRETS"},
	} {
		path := secretFile(t, c.text)
		got, err := configFromEnv("X", strings.Fields(fmt.Sprintf(c.variables, path)))
		switch want := strings.ReplaceAll(c.want, "%s", path); {
		case want == "" && (err != nil || got.Secret != goodSecret):
			t.Errorf("%s: %q, %v", c.what, got.Secret, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", c.what, err, want)
		case err != nil && (strings.Contains(err.Error(), goodSecret) || strings.Contains(err.Error(), "hunter2")):
			t.Errorf("%s: the error holds the secret: %v", c.what, err)
		}
	}
	for _, path := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none"), os.DevNull} {
		if _, err := configFromEnv("X", []string{"X_SECRET_FILE=" + path}); err == nil ||
			!strings.Contains(err.Error(), "X_SECRET_FILE: ") || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestAPrefixHasToBeOne(t *testing.T) {
	for _, prefix := range []string{"", "_", "A B", "1A", "A="} {
		if _, err := ConfigFromEnv(prefix); err == nil {
			t.Errorf("%q was accepted", prefix)
		}
	}
	t.Setenv("ORDERS_LOCK_NAME", "orders-7")
	if c, err := ConfigFromEnv("ORDERS_LOCK"); err != nil || c.Name != "orders-7" {
		t.Errorf("%q, %v", c.Name, err)
	}
}

func FuzzEnvironment(f *testing.F) {
	f.Add("JOIN", "dns:///orders:7947, a:1,", "hunter2hunter2hunter2")
	f.Add("GRACE", "none", "hunter2")
	f.Add("ADVERTISE", "[fd00::1]", "")
	f.Add("SECERT", "x", "a,b")
	f.Add("OLD_SECRETS", "a,,b", "c")
	f.Fuzz(func(t *testing.T, name, value, secret string) {
		secret = "<<" + strings.ReplaceAll(secret, ",", "") + ">>" // a text that occurs nowhere else
		c, err := configFromEnv("X", []string{"X_SECRET=" + secret, "X_OLD_SECRETS=" + secret + "," +
			secret, "X_MISSPELT=" + secret, "X_" + name + "=" + value})
		if err == nil {
			t.Fatal("an unknown variable was accepted")
		}
		if strings.Contains(err.Error(), secret) && !strings.Contains(name+value, secret) {
			t.Fatalf("%v holds the secret %q", err, secret)
		}
		if !reflect.DeepEqual(c, Config{}) {
			t.Fatal("an error and a Config")
		}
		if name != "JOIN" && name != "FOUNDERS" {
			return
		}
		good, err := configFromEnv("X", []string{"X_" + name + "=" + value})
		for _, part := range append(good.Join, good.Founders...) {
			if err != nil || part == "" || strings.Contains(part, ",") || strings.TrimSpace(part) != part {
				t.Fatalf("%q was read out of %q, %v", part, value, err)
			}
		}
	})
}

func TestOpenSecretFilesAreWarnedOf(t *testing.T) {
	path := secretFile(t, goodSecret)
	for mode, want := range map[os.FileMode]int{0o600: 0, 0o400: 0, 0o644: 1, 0o666: 1, 0o620: 1} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		c, err := configFromEnv("X", []string{"X_SECRET_FILE=" + path})
		if err != nil || len(c.warnings) != want || want > 0 && !strings.Contains(c.warnings[0], path) {
			t.Errorf("%#o: %q, %v", mode, c.warnings, err)
		}
	}
	var log bytes.Buffer
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	c, err := configFromEnv("X", []string{"X_SECRET_FILE=" + path, "X_NAME=n"})
	if err != nil {
		t.Fatal(err)
	}
	c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	n, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if strings.Count(log.String(), "may be read or changed by others") != 1 {
		t.Error("Start does not say so")
	}
}
