package jobs

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Rights are what this package needs in a namespace.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"create", "get", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create", "get", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"create", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
		{APIGroups: []string{""}, Resources: []string{"pods/portforward"}, Verbs: []string{"create"}},
	}
}

// Role gives these rights.
func Role(namespace string) *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: metav1.ObjectMeta{Name: "tare", Namespace: namespace}, Rules: Rights(),
	}
}

// Missing asks the API server which of these rights its caller lacks, as "create secrets".
// Where the server does not answer such questions, that is an error.
func Missing(ctx context.Context, c client.Client, namespace string) ([]string, error) {
	var missing []string
	for _, rule := range Rights() {
		resource, sub, _ := strings.Cut(rule.Resources[0], "/")
		for _, verb := range rule.Verbs {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: namespace, Verb: verb, Group: rule.APIGroups[0], Resource: resource, Subresource: sub,
				},
			}}
			if err := c.Create(ctx, review); err != nil {
				return nil, fmt.Errorf("asking what is allowed in namespace %s: %w", namespace, err)
			}
			if !review.Status.Allowed {
				missing = append(missing, verb+" "+rule.Resources[0])
			}
		}
	}
	return missing, nil
}
