package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"google.golang.org/protobuf/encoding/protojson"
	meshv1 "istio.io/api/mesh/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Data of a template of the injector, in the types that Istio gives it.
type Data struct {
	ObjectMeta  metav1.ObjectMeta
	Spec        corev1.PodSpec
	ProxyConfig *meshv1.ProxyConfig
	MeshConfig  *meshv1.MeshConfig
	Values      map[string]any
	Revision    string
	ProxyUID    int64
}

// executeInjection executes a template of the injector with sprig's functions alone.
func executeInjection(text string, encoded json.RawMessage) ([]byte, error) {
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(encoded, &parts); err != nil {
		return nil, err
	}
	data := Data{ProxyConfig: &meshv1.ProxyConfig{}, MeshConfig: &meshv1.MeshConfig{}}
	for name, target := range map[string]any{
		"objectMeta": &data.ObjectMeta, "spec": &data.Spec, "values": &data.Values, "revision": &data.Revision, "proxyUID": &data.ProxyUID,
	} {
		if err := json.Unmarshal(parts[name], target); err != nil {
			return nil, err
		}
	}
	if err := protojson.Unmarshal(parts["proxyConfig"], data.ProxyConfig); err != nil {
		return nil, err
	}
	if err := protojson.Unmarshal(parts["meshConfig"], data.MeshConfig); err != nil {
		return nil, err
	}
	functions := maps.Clone(sprig.TxtFuncMap())
	parsed, err := template.New("templates").Funcs(functions).Parse(text)
	if err != nil {
		return nil, err
	}
	var output bytes.Buffer
	err = parsed.Execute(&output, data)
	return output.Bytes(), err
}
