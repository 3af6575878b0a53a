/**
 * VM variables with which the agent fetches a WasmPlugin's code and which it then removes; named as in Istio. Credentials are sent only to proxies
 * whose verified namespace is that of the plugin and its Secret.
 */
import { hash } from 'node:crypto';
import { type Config, type ConfigKey, configKeyOf } from '../../model/config/config.ts';
import type { WasmPlugin } from '../../model/kinds/extensions/wasm-plugin.ts';
import { pullSecretOf } from '../../model/kinds/kubernetes/pull-secret.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';

export type PullVariables = Readonly<Record<string, string>>;

export const pullSecretVariable = 'ISTIO_META_WASM_IMAGE_PULL_SECRET';
const policyVariable = 'ISTIO_META_WASM_IMAGE_PULL_POLICY';
const versionVariable = 'ISTIO_META_WASM_PLUGIN_RESOURCE_VERSION';

interface Pull {
  readonly variables: PullVariables;
  readonly mayHaveSecret: boolean;
  readonly secret: Config | undefined;
  readonly dependsOn: readonly ConfigKey[];
}

/** The secret is empty if the proxy may not receive it. */
export function pullOf(plugin: Config<WasmPlugin>, shape: ProxyShape, { credentials }: PushContext): Pull {
  const { namespace, spec } = plugin;
  const { imagePullSecret: name, imagePullPolicy: policy = 'UNSPECIFIED_POLICY' } = spec;
  const mayHaveSecret = shape.pullSecrets === true && namespace === shape.configNamespace;
  const secret = name && mayHaveSecret ? credentials.secret(namespace, name) : undefined;
  return {
    variables: {
      [policyVariable]: policy,
      [versionVariable]: versionOf(plugin),
      ...(name && { [pullSecretVariable]: (secret && pullSecretOf(secret.spec)) ?? '' }),
    },
    mayHaveSecret,
    secret,
    dependsOn: name && mayHaveSecret ? [{ ...configKeyOf(plugin), kind: 'Secret', name }] : [],
  };
}

/** The version changes with spec and annotations, but not with the status. */
function versionOf({ spec, annotations }: Config<WasmPlugin>): string {
  const { verificationKey: _, ...usedSpec } = spec;
  return hash('sha256', JSON.stringify([usedSpec, annotations])).slice(0, 16);
}
