{{- define "tare.labels" -}}
app.kubernetes.io/name: tare-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tare.watchLabels" -}}
app.kubernetes.io/name: tare-watch
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* What the operator needs in each namespace whose resources it acts on. */ -}}
{{- define "tare.rules" -}}
- apiGroups: [tarehq.github.io]
  resources: [studies, loadtests]
  verbs: [get, list, watch, patch]
- apiGroups: [tarehq.github.io]
  resources: [studies/status, loadtests/status]
  verbs: [update]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [create, get, delete]
- apiGroups: [""]
  resources: [secrets]
  verbs: [create, get, delete]
- apiGroups: [""]
  resources: [services]
  verbs: [create, delete]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [create, delete]
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
- apiGroups: [""]
  resources: [pods/portforward]
  verbs: [create]
{{- range .Values.specimen.rules }}
- apiGroups: {{ toJson .apiGroups }}
  resources: {{ toJson .resources }}
  verbs: [get, create, patch, delete]
{{- end }}
{{- end }}
