import type { ErrorTable } from './error-table.ts';

export const agentTable = {
  ENVOY_NOT_FOUND: {
    meaning: 'Envoy binary not found',
    action: 'name a binary with `--binaryPath` or `ENVOY_BINARY`, or allow its installation',
  },
  ENVOY_CHANGED: {
    meaning: 'the Envoy binary changed after it was checked',
    action: 'none: the agent checks the new binary and retries',
  },
  ENVOY_INSTALL_FAILED: {
    meaning: 'installation of Envoy failed',
    action: 'install Envoy by other means and name it in `ENVOY_BINARY`',
  },
  BOOTSTRAP_INVALID: {
    meaning: 'invalid Envoy bootstrap',
    action: 'correct the file or the configuration that the message names, and start the agent again',
  },
  CERTIFICATES_CHANGED: {
    meaning: 'the certificate files changed after they were checked',
    action: 'none: the agent checks the new files and retries',
  },
  CONTROL_PLANE_UNREACHABLE: {
    meaning: 'control plane unreachable',
    action: 'check the address, its root certificate and the network',
  },
  SHARED_MEMORY_UNKNOWN: {
    meaning: 'the shared memory of Envoy cannot be repaired',
    action: 'stop all Envoys with this base ID, or let the agent choose a base ID',
  },
  SHARED_MEMORY_UNUSABLE: {
    meaning: 'no shared memory for Envoy',
    action: 'mount `/dev/shm` with enough space, writable for this user',
  },
  BASE_IDS_EXHAUSTED: {
    meaning: 'no free base ID',
    action: 'stop Envoys that are not used, or choose another `--baseId`',
  },
  IPTABLES_FAILED: {
    meaning: 'cannot change the rules that redirect traffic',
    action: 'run as root with `NET_ADMIN`, with iptables or nftables of the host',
  },
  REDIRECTION_ABSENT: {
    meaning: 'traffic is not redirected',
    action: 'run `pilot-agent istio-iptables` again, and check the reported connection',
  },
  REDIRECTION_REMAINS: {
    meaning: 'parts of the redirection were not removed',
    action: 'remove the listed rules by hand',
  },
  REDIRECTION_LOOP: {
    meaning: 'connections of this agent would be redirected to itself',
    action: 'exclude the user or group of the agent from redirection',
  },
} as const satisfies ErrorTable;
