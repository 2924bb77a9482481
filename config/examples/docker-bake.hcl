# The image for two architectures, pushed to your registry. From the top folder:
#   REGISTRY=registry.example.org docker buildx bake --file config/examples/docker-bake.hcl --push
# Another architecture than that of the machine needs QEMU, or a builder on such a machine (docker buildx create --append).
variable "REGISTRY" {
  default = "registry.example.org"
}

variable "VERSION" {
  default = "0.4.0"
}

target "default" {
  context   = "."
  platforms = ["linux/amd64", "linux/arm64"]
  tags      = ["${REGISTRY}/handle-resolver-proxy:${VERSION}"]
  # The list of packages in the image, and how it was made.
  attest = ["type=sbom", "type=provenance,mode=max"]
}

# The Handle server in memory, for tests of other programs: docker buildx bake … dev-server
target "dev-server" {
  inherits = ["default"]
  target   = "dev-server"
  tags     = ["${REGISTRY}/handle-resolver-proxy:${VERSION}-dev-server"]
}
