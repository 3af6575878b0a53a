import * as E from 'fp-ts/lib/Either.js';
import { supportsNativeSidecars } from '../../injection/decision/native-sidecars.ts';
import type { InjectorCluster, SidecarInjector } from '../../injection/injector.ts';
import type { ConfigSet } from '../../model/config/config-set.ts';
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import { proxyConfigFor } from '../../model/push-context/workload-proxy-config.ts';
import { faultLog } from '../../runtime/fences/uncaught.ts';
import type { Logger } from '../../runtime/output/log.ts';
import type { Ca } from '../ca/make-ca.ts';
import type { DiscoveryOptions } from '../options/discovery-options.ts';
import { ConfigReviews } from './config-reviews.ts';
import { GoTemplateThread, installedGoTemplates } from './go-templates/go-template-thread.ts';
import { InjectingConfigurations, type InjectionCluster } from './injecting-configurations.ts';
import { InjectionReviews } from './injection-reviews.ts';
import { type InjectorConfigMap, InjectorSettings } from './injector-settings.ts';
import { webhookServerWithEffects } from './webhook-server.effects.ts';
import { WebhookServerCounts } from './webhook-server.ts';

export interface WebhooksParts {
  readonly options: Pick<DiscoveryOptions, 'webhooksAddress' | 'revision'>;
  readonly configMap: InjectorConfigMap | undefined;
  readonly cluster: InjectionCluster | undefined;
  readonly mesh: () => MeshConfig;
  readonly objects: () => ConfigSet;
  readonly ca: Ca;
  readonly log: Logger;
}

/** @returns `undefined` without a configured address or a watched cluster */
export function makeWebhooks({ options, configMap, cluster, mesh, objects, ca, log }: WebhooksParts) {
  const { webhooksAddress: address, revision } = options;
  if (address === undefined || configMap === undefined) return undefined;
  const settings = new InjectorSettings({ configMap, revision, log });
  const injecting = cluster && new InjectingConfigurations({ source: cluster, log });
  const wasm = installedGoTemplates();
  const goTemplates = wasm === undefined ? undefined : new GoTemplateThread(wasm);
  const injector = (): E.Either<string, SidecarInjector> => {
    const current = settings.currentSettings;
    if (E.isLeft(current)) return current;
    return E.right({
      settings: current.right,
      mesh: mesh(),
      proxyConfigFor: (workload) => proxyConfigFor(objects().ProxyConfig, mesh(), workload).proxyConfig,
      ...(goTemplates && { goTemplates }),
      ...(injecting && cluster && { cluster: injectorCluster(injecting, cluster) }),
    });
  };
  const injection = new InjectionReviews({
    injector,
    log,
    now: () => performance.now(),
  });
  const validation = new ConfigReviews({ log, now: () => performance.now() });
  const server = new WebhookServerCounts();
  const reportFault = faultLog(log, 'webhooks.fault');
  return {
    injector,
    onInjector: (onChanged: () => void): void => configMap.onChanged(onChanged),
    describe: (): object => {
      const current = settings.currentSettings;
      return {
        ...(E.isRight(current) ? { settings: current.right } : { unavailable: current.left }),
        ...injecting?.describe(),
      };
    },
    counts: {
      ...{ injection: injection.counts, refused: server.refused },
      validation: { passed: validation.passed, failed: validation.failed },
    },
    actor: () =>
      webhookServerWithEffects(address, () => ({
        counts: server,
        followTls: (onChanged) => ca.portCertificate!.follow(onChanged),
        webhooks: {
          inject: (body, environment) => injection.review(body, environment),
          validate: (body) => validation.review(body),
        },
        fault: (error) => reportFault(error),
      })),
  };
}

function injectorCluster(
  configurations: InjectingConfigurations,
  { namespace, kubelets }: InjectionCluster,
): InjectorCluster {
  return {
    callersOf: (name, labels) => configurations.callersOf(name, labels),
    namespaceAnnotations: (name) => namespace(name)?.annotations ?? {},
    supportsNativeSidecars: (nodeName) => {
      const versions = new Map(kubelets());
      return supportsNativeSidecars(versions.get(nodeName ?? ''), versions.values());
    },
  };
}
