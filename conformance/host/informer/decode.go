package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"
)

// envelope begins what Kubernetes writes in protobuf.
var envelope = []byte("k8s\x00")

// decode asks for one object in protobuf, reads it by our .proto files, and tells it as JSON.
func decode(config *rest.Config) error {
	raw, err := get(config)
	if err != nil {
		return err
	}
	bare, found := bytes.CutPrefix(raw, envelope)
	if !found {
		return fmt.Errorf("no envelope: %q", raw)
	}
	unknown := &runtime.Unknown{}
	if err := unknown.Unmarshal(bare); err != nil {
		return err
	}
	message, err := messageOf(unknown.Kind)
	if err != nil {
		return err
	}
	if err := proto.Unmarshal(unknown.Raw, message); err != nil {
		return err
	}
	if err := allKnown(message); err != nil {
		return err
	}
	out, err := protojson.Marshal(message)
	if err != nil {
		return err
	}
	fmt.Printf("{\"apiVersion\":%q,\"kind\":%q,\"object\":%s}\n", unknown.APIVersion, unknown.Kind, out)
	return nil
}

func get(config *rest.Config) ([]byte, error) {
	plain := *config
	plain.ContentConfig = resource.UnstructuredPlusDefaultContentConfig()
	plain.GroupVersion, plain.APIPath = &schema.GroupVersion{}, "/apis"
	client, err := rest.RESTClientFor(&plain)
	if err != nil {
		return nil, err
	}
	request := client.Get().AbsPath(*path).SetHeader("Accept", runtime.ContentTypeProtobuf)
	return request.DoRaw(context.Background())
}

// messageOf makes an empty message of a kind by the descriptors that are built beside this program.
func messageOf(kind string) (*dynamicpb.Message, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	encoded, err := os.ReadFile(filepath.Join(filepath.Dir(self), "kinds.binpb"))
	if err != nil {
		return nil, err
	}
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(encoded, set); err != nil {
		return nil, err
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		return nil, err
	}
	name := protoreflect.FullName("k8s.io.api.coordination.v1alpha1." + kind)
	descriptor, err := files.FindDescriptorByName(name)
	if err != nil {
		return nil, err
	}
	message, ok := descriptor.(protoreflect.MessageDescriptor)
	if !ok {
		return nil, fmt.Errorf("%s is no message", name)
	}
	return dynamicpb.NewMessage(message), nil
}

// allKnown fails if there is a field that our .proto files do not have.
func allKnown(message protoreflect.Message) error {
	if unknown := message.GetUnknown(); len(unknown) > 0 {
		return fmt.Errorf("%s has fields that nobody knows: %x", message.Descriptor().FullName(), []byte(unknown))
	}
	var failed error
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.IsMap() || field.Message() == nil:
		case field.IsList():
			for at := range value.List().Len() {
				failed = errors.Join(failed, allKnown(value.List().Get(at).Message()))
			}
		default:
			failed = allKnown(value.Message())
		}
		return failed == nil
	})
	return failed
}
