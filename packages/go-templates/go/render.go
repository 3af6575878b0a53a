package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/template"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	meshv1 "istio.io/api/mesh/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Request is one template and its data. Names and shapes of the data are those of Istio's injector.
type Request struct {
	Name     string `json:"name"`
	Template string `json:"template"`
	// Limit of the output in bytes.
	MaxOutput int `json:"maxOutput"`
	// What the function env reads.
	Environment map[string]string `json:"environment"`
	// What protoToJSON leaves out.
	ProxyDefaults json.RawMessage `json:"proxyDefaults"`
	Data          struct {
		TypeMeta                 metav1.TypeMeta   `json:"typeMeta"`
		DeploymentMeta           metav1.ObjectMeta `json:"deploymentMeta"`
		ObjectMeta               metav1.ObjectMeta `json:"objectMeta"`
		Spec                     corev1.PodSpec    `json:"spec"`
		ProxyConfig              json.RawMessage   `json:"proxyConfig"`
		MeshConfig               json.RawMessage   `json:"meshConfig"`
		Values                   map[string]any    `json:"values"`
		Revision                 string            `json:"revision"`
		ProxyImage               string            `json:"proxyImage"`
		ProxyInitImage           string            `json:"proxyInitImage"`
		ProxyUID                 int64             `json:"proxyUID"`
		ProxyGID                 int64             `json:"proxyGID"`
		InboundTrafficPolicyMode string            `json:"inboundTrafficPolicyMode"`
		CompliancePolicy         string            `json:"compliancePolicy"`
		NativeSidecars           bool              `json:"nativeSidecars"`
	} `json:"data"`
}

// Data is what a template reads.
type Data struct {
	TypeMeta                 metav1.TypeMeta
	DeploymentMeta           metav1.ObjectMeta
	ObjectMeta               metav1.ObjectMeta
	Spec                     corev1.PodSpec
	ProxyConfig              *meshv1.ProxyConfig
	MeshConfig               *meshv1.MeshConfig
	Values                   map[string]any
	Revision                 string
	ProxyImage               string
	ProxyInitImage           string
	ProxyUID                 int64
	ProxyGID                 int64
	InboundTrafficPolicyMode string
	CompliancePolicy         string
	NativeSidecars           bool
}

// Respond returns {"output": text} or {"error": text}.
func Respond(request []byte) []byte {
	output, err := respond(request)
	result := map[string]string{"output": output}
	if err != nil {
		result = map[string]string{"error": err.Error()}
	}
	encoded, err := json.Marshal(result)
	if err != nil {
		return []byte(`{"error":"the output cannot be encoded"}`)
	}
	return encoded
}

func respond(encoded []byte) (string, error) {
	var request Request
	if err := json.Unmarshal(encoded, &request); err != nil {
		return "", err
	}
	data, err := dataOf(request)
	if err != nil {
		return "", err
	}
	defaults := &meshv1.ProxyConfig{}
	if err := decode(request.ProxyDefaults, defaults); err != nil {
		return "", err
	}
	return Render(request, data, defaults)
}

// Render executes a template. A panic of a function is an error.
func Render(request Request, data Data, defaults *meshv1.ProxyConfig) (text string, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panic: %v", reason)
		}
	}()
	parsed, err := template.New(request.Name).Funcs(functions(request.Environment, defaults)).Parse(request.Template)
	if err != nil {
		return "", err
	}
	output := limitedOutput{rest: request.MaxOutput}
	if err := parsed.Execute(&output, data); err != nil {
		return "", err
	}
	return output.String(), nil
}

var errTooLong = errors.New("output is too long")

type limitedOutput struct {
	strings.Builder
	rest int
}

func (output *limitedOutput) Write(part []byte) (int, error) {
	if output.rest -= len(part); output.rest < 0 {
		return 0, errTooLong
	}
	return output.Builder.Write(part)
}

func dataOf(request Request) (Data, error) {
	in := request.Data
	data := Data{
		TypeMeta: in.TypeMeta, DeploymentMeta: in.DeploymentMeta, ObjectMeta: in.ObjectMeta, Spec: in.Spec,
		ProxyConfig: &meshv1.ProxyConfig{}, MeshConfig: &meshv1.MeshConfig{},
		Values: in.Values, Revision: in.Revision, ProxyImage: in.ProxyImage, ProxyInitImage: in.ProxyInitImage,
		ProxyUID: in.ProxyUID, ProxyGID: in.ProxyGID,
		InboundTrafficPolicyMode: in.InboundTrafficPolicyMode, CompliancePolicy: in.CompliancePolicy,
		NativeSidecars: in.NativeSidecars,
	}
	return data, errors.Join(decode(in.ProxyConfig, data.ProxyConfig), decode(in.MeshConfig, data.MeshConfig))
}

func decode(encoded json.RawMessage, message proto.Message) error {
	if len(encoded) == 0 {
		return nil
	}
	return protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(encoded, message)
}
