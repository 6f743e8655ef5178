package check

import (
	"errors"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// The types of the Prometheus operator, with a field for each key that the files in deploy may
// contain. Any other key is a fault.
type serviceMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector  *metav1.LabelSelector `json:"selector"`
		Endpoints []struct {
			TargetPort *intstr.IntOrString `json:"targetPort"`
			Path       string              `json:"path"`
			Interval   string              `json:"interval"`
		} `json:"endpoints"`
	} `json:"spec"`
}

type prometheusRule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              any `json:"spec"`
}

const operator = "monitoring.coreos.com/v1"

func strictly(document string, into any) error {
	raw, err := yaml.YAMLToJSONStrict([]byte(document))
	if err != nil {
		return err
	}
	strict, err := json.UnmarshalStrict(raw, into)
	return errors.Join(append(strict, err)...)
}

// ServiceMonitor returns the faults of a ServiceMonitor of the Prometheus operator. workload is the
// file with the Service and the pods.
func ServiceMonitor(document, workload string) []error {
	var f faults
	var s serviceMonitor
	m, err := decode(workload)
	if err = errors.Join(err, strictly(document, &s)); err != nil {
		return []error{err}
	}
	f.must(s.APIVersion == operator && s.Kind == "ServiceMonitor", "it is a %s %s", s.APIVersion, s.Kind)
	f.must(selects(s.Spec.Selector, m.service.Labels), "the ServiceMonitor does not select the Service, which has the "+
		"labels %v", m.service.Labels)
	f.must(len(s.Spec.Endpoints) == 1, "%d endpoints, want one", len(s.Spec.Endpoints))
	for _, e := range s.Spec.Endpoints {
		container := m.container()
		f.must(e.TargetPort != nil && slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool {
			return p.Name == e.TargetPort.StrVal && container.LivenessProbe != nil &&
				int(p.ContainerPort) == container.LivenessProbe.HTTPGet.Port.IntValue()
		}), "the target port is not the port of the probes, %v", container.Ports)
		f.must(e.Path != "" && e.Interval != "", "path %q and interval %q", e.Path, e.Interval)
	}
	return f
}

func (m manifest) container() (c corev1.Container) {
	var all []corev1.Container
	switch {
	case m.set != nil:
		all = m.set.Spec.Template.Spec.Containers
	case m.deployment != nil:
		all = m.deployment.Spec.Template.Spec.Containers
	}
	if len(all) > 0 {
		c = all[0]
	}
	return c
}

// PrometheusRule returns the faults of a PrometheusRule of the Prometheus operator. Its groups must
// be those of alerts, a file of rules for Prometheus itself.
func PrometheusRule(document, alerts string) []error {
	var f faults
	var r prometheusRule
	var groups any
	if err := errors.Join(strictly(document, &r), strictly(alerts, &groups)); err != nil {
		return []error{err}
	}
	f.must(r.APIVersion == operator && r.Kind == "PrometheusRule", "it is a %s %s", r.APIVersion, r.Kind)
	f.must(groups != nil && reflect.DeepEqual(r.Spec, groups), "the rules are not those of alerts.yml")
	return f
}
