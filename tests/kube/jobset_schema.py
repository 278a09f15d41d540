# SPDX-License-Identifier: Apache-2.0
"""JobSet's schema as far as its documentation describes the fields that the chart uses; the job's template is checked as a Job.

Source: the API reference of JobSet v1alpha2 and its guide to failure policies.
"""

NETWORK = {"type": "object", "additionalProperties": False,
           "properties": {"enableDNSHostnames": {"type": "boolean"}, "subdomain": {"type": "string"}, "publishNotReadyAddresses": {"type": "boolean"}}}
REPLICATED = {"type": "object", "additionalProperties": False, "required": ["name", "template"],
              "properties": {"name": {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}, "replicas": {"type": "integer", "minimum": 0},
                             "template": {"type": "object", "required": ["spec"]}}}
SPEC = {"type": "object", "additionalProperties": False, "required": ["replicatedJobs"],
        "properties": {"network": NETWORK, "failurePolicy": {"type": "object", "additionalProperties": False,
                                                             "properties": {"maxRestarts": {"type": "integer", "minimum": 0}}},
                       "suspend": {"type": "boolean"}, "ttlSecondsAfterFinished": {"type": "integer", "minimum": 0},
                       "replicatedJobs": {"type": "array", "minItems": 1, "items": REPLICATED}}}
SCHEMA = {"type": "object", "additionalProperties": False, "required": ["apiVersion", "kind", "metadata", "spec"],
          "properties": {"apiVersion": {"const": "jobset.x-k8s.io/v1alpha2"}, "kind": {"const": "JobSet"}, "metadata": {"type": "object"},
                         "spec": SPEC, "status": {"type": "object"}}}


def validate(thing):
    import jsonschema
    import kubernetes_validate
    jsonschema.validate(thing, SCHEMA)
    for job in thing["spec"]["replicatedJobs"]:
        template = job["template"]
        kubernetes_validate.validate({"apiVersion": "batch/v1", "kind": "Job", "metadata": {**template.get("metadata", {}), "name": job["name"]},
                                      "spec": template["spec"]}, "1.37", strict=True)
