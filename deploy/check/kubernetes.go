package check

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

type manifest struct {
	service    corev1.Service
	budget     policyv1.PodDisruptionBudget
	network    networkingv1.NetworkPolicy
	set        *appsv1.StatefulSet
	deployment *appsv1.Deployment
}

// decode decodes every document strictly into its type. Field names are case-sensitive, as in the
// API server.
func decode(file string) (m manifest, err error) {
	var kinds []string
	for _, document := range strings.Split(file, "\n---\n") {
		raw, err := yaml.YAMLToJSONStrict([]byte(document))
		if err != nil {
			return m, err
		}
		var kind metav1.TypeMeta
		if err := json.UnmarshalCaseSensitivePreserveInts(raw, &kind); err != nil {
			return m, err
		}
		var into any
		name := kind.APIVersion + " " + kind.Kind
		switch name {
		case "v1 Service":
			into = &m.service
		case "policy/v1 PodDisruptionBudget":
			into = &m.budget
		case "networking.k8s.io/v1 NetworkPolicy":
			into = &m.network
		case "apps/v1 StatefulSet":
			m.set = &appsv1.StatefulSet{}
			into = m.set
		case "apps/v1 Deployment":
			m.deployment = &appsv1.Deployment{}
			into = m.deployment
		default:
			return m, fmt.Errorf("a document is a %q, which this check does not know", name)
		}
		strict, err := json.UnmarshalStrict(raw, into)
		if err = errors.Join(append(strict, err)...); err != nil {
			return m, fmt.Errorf("%s: %w", name, err)
		}
		kinds = append(kinds, kind.Kind)
	}
	slices.Sort(kinds)
	if len(kinds) != 4 || len(slices.Compact(slices.Clone(kinds))) != 4 {
		return m, fmt.Errorf("want a Service, a PodDisruptionBudget, a NetworkPolicy and a workload, got %v", kinds)
	}
	return m, nil
}

type faults []error

func (f *faults) must(kept bool, format string, args ...any) {
	if !kept {
		*f = append(*f, fmt.Errorf(format, args...))
	}
}

func (f *faults) around(m manifest, p Program, labels map[string]string, selector *metav1.LabelSelector) {
	s := m.service.Spec
	f.must(s.ClusterIP == corev1.ClusterIPNone,
		"the Service is not headless: a virtual address leads to one pod, and all pods must be found")
	f.must(s.PublishNotReadyAddresses,
		"the Service lists ready pods only: no pod is ready before the group is founded, so the pods could not find each "+
			"other")
	f.must(len(s.Ports) == 1 && int(s.Ports[0].Port) == p.LockPort, "the Service's port is not %d, that of the locks",
		p.LockPort)
	f.must(same(s.Selector, labels), "the Service selects %v, the pods are %v", s.Selector, labels)
	f.must(selects(selector, labels), "the workload does not select its own pods")
	f.must(selects(m.budget.Spec.Selector, labels), "the PodDisruptionBudget does not select the pods")
	b := m.budget.Spec
	f.must(b.MinAvailable == nil && b.MaxUnavailable != nil && b.MaxUnavailable.String() == "1",
		"the PodDisruptionBudget does not have maxUnavailable: 1, which leaves a majority for any number of voters")
	f.closed(m.network.Spec, p.LockPort, labels)
}

// closed checks that the pods reach each other at the port of the locks, that nothing else reaches
// it but what the policy names, and that all other ports stay open.
func (f *faults) closed(n networkingv1.NetworkPolicySpec, lock int, labels map[string]string) {
	f.must(selects(&n.PodSelector, labels), "the NetworkPolicy does not select the pods")
	f.must(len(n.Egress) == 0 && !slices.Contains(n.PolicyTypes, networkingv1.PolicyTypeEgress),
		"the NetworkPolicy limits what the pods reach: they would need DNS and each other")
	ours, others := false, true
	for port := 1; port <= 65535; port++ {
		byAll := false
		for _, rule := range n.Ingress {
			if !slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool {
				last := p.Port.IntValue()
				if p.EndPort != nil {
					last = int(*p.EndPort)
				}
				return p.Port.IntValue() <= port && port <= last
			}) {
				continue
			}
			byAll = byAll || len(rule.From) == 0
			ours = ours || port == lock && slices.ContainsFunc(rule.From, func(peer networkingv1.NetworkPolicyPeer) bool {
				return peer.NamespaceSelector == nil && selects(peer.PodSelector, labels)
			})
		}
		if port == lock {
			f.must(!byAll, "every pod reaches port %d, that of the locks", lock)
		} else if !byAll {
			others = false
		}
	}
	f.must(ours, "the NetworkPolicy keeps the pods from each other's port %d", lock)
	f.must(others, "the NetworkPolicy closes ports that are not those of the locks")
}

func same(a, b map[string]string) bool {
	if len(a) != len(b) || len(a) == 0 {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

func selects(s *metav1.LabelSelector, labels map[string]string) bool {
	return s != nil && len(s.MatchExpressions) == 0 && same(s.MatchLabels, labels)
}
