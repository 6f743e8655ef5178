package check

import (
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

var write = flag.Bool("write", false, "write the copies of the alert rules anew")

// build runs kustomize on an overlay, beside a copy of the directory deploy from which change
// removes a text.
func build(t *testing.T, overlay, change string) rendered {
	t.Helper()
	disk := filesys.MakeFsInMemory()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		base := strings.HasSuffix(path, ".yaml") || strings.HasSuffix(path, ".json")
		if err != nil || d.IsDir() || !base || strings.Contains(path, "helm") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return disk.WriteFile("/deploy/"+filepath.ToSlash(strings.TrimPrefix(path, "../")),
			[]byte(strings.Replace(string(text), change, "", 1)))
	})
	if err == nil {
		err = disk.WriteFile("/shop/kustomization.yaml", []byte(overlay))
	}
	if err != nil {
		t.Fatal(err)
	}
	all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, "/shop")
	if err != nil {
		t.Fatal(err)
	}
	text, err := all.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	r := rendered{}
	r.add(t, string(text))
	return r
}

const renamed = `
resources: [../deploy]
namePrefix: shop-
nameSuffix: -eu
images: [{name: registry.example/orders, newName: registry.example/shop, newTag: "7"}]
replicas: [{name: orders, count: 5}]
`

// The base follows the rules of the plain manifests, also with other names and more pods.
func TestTheBaseIsRight(t *testing.T) {
	p := program(t)
	for name, c := range map[string]struct{ overlay, set string }{
		"as it is": {"resources: [../deploy]", "name: orders\n"},
		"renamed":  {renamed, "name: shop-orders-eu\n"},
	} {
		r := build(t, c.overlay, "")
		for _, err := range StatefulSet(r.workload(), p) {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(r["StatefulSet"], c.set) {
			t.Errorf("%s: %q is not in\n%s", name, c.set, r["StatefulSet"])
		}
	}
	// Without the references the founders keep their old names, which the check must notice.
	var found []string
	for _, err := range StatefulSet(build(t, renamed, "configurations: [kustomize/names.yaml]\n").workload(), p) {
		found = append(found, err.Error())
	}
	if !strings.Contains(strings.Join(found, "\n"), `founder 0 is "orders-0", the pod is shop-orders-eu-0`) {
		t.Errorf("old names of founders: %q", found)
	}
}

// The component adds what Prometheus scrapes, and the generated alerts.
func TestTheOverlayHasTheAlerts(t *testing.T) {
	alerts, err := os.ReadFile(filepath.Join(root, "adapters", "mortiseotel", "alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	if *write {
		writeAlerts(t, string(alerts))
	}
	for _, overlay := range []string{"resources: [../deploy]", renamed} {
		r := build(t, overlay+"\ncomponents: [../deploy/kustomize/monitoring]\n", "")
		if kinds := strings.Join(r.kinds(), " "); kinds !=
			"NetworkPolicy PodDisruptionBudget PrometheusRule Service ServiceMonitor StatefulSet" {
			t.Fatalf("the kinds are %s", kinds)
		}
		for _, err := range StatefulSet(r.workload(), program(t)) {
			t.Error(err)
		}
		for _, err := range ServiceMonitor(r["ServiceMonitor"], r.workload()) {
			t.Error(err)
		}
		for _, err := range PrometheusRule(r["PrometheusRule"], string(alerts)) {
			t.Errorf("%v: go test -run %s -write ./...", err, t.Name())
		}
	}
}

// writeAlerts writes the rules to the chart and to the component.
func writeAlerts(t *testing.T, alerts string) {
	t.Helper()
	var groups any
	if err := strictly(alerts, &groups); err != nil {
		t.Fatal(err)
	}
	rule, err := json.MarshalIndent(map[string]any{"apiVersion": operator, "kind": "PrometheusRule",
		"metadata": map[string]string{"name": "orders"}, "spec": groups}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		filepath.Join(chartDir, "alerts.rules"): alerts,
		"../kustomize/monitoring/alerts.json":   string(rule) + "\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
