import { type Config, configKeyText } from '../../../model/config/config.ts';
import type { Gateway } from '../../../model/kinds/gateway/gateway.ts';
import { crlKeyOf, listWarnings } from '../../../model/kinds/kubernetes/credential.ts';
import type { ProxyShape } from '../../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import { backendTlsReports } from '../../../model/translation/gateway-api/backend-tls-status.ts';
import { http3Offer } from '../../../networking/gateway/http3.ts';
import { mergeGateways } from '../../../networking/gateway/merge-gateways.ts';
import { selectorShapes } from '../../../networking/gateway/selector-shapes.ts';
import {
  credentialsOfServer,
  parseCredentialName,
  rootsObjectName,
} from '../../../networking/secrets/credential-name.ts';
import type { FindDiagnostics, FinderInput, NoteDiagnostic } from './find-diagnostics.ts';
import { filterRouters, unservedCredentials } from './unserved-credentials.ts';

/** Includes gateways of which only selectors are known, because their proxies may be connected to other replicas. */
export const findRejectedServers: FindDiagnostics = (sources, reportDiagnostic) =>
  findInMergedServers(sources, 'rejectionMessages', reportDiagnostic);

export const findOverlappingServers: FindDiagnostics = (sources, reportDiagnostic) =>
  findInMergedServers(sources, 'overlapMessages', reportDiagnostic);

function* findInMergedServers(
  { proxies, configs, context }: FinderInput,
  list: 'rejectionMessages' | 'overlapMessages',
  reportDiagnostic: NoteDiagnostic,
): Iterable<void> {
  const reportAll = function* (shape: ProxyShape, push: PushContext, proxy?: string): Iterable<void> {
    for (const text of mergeGateways(shape, push)[list]) {
      const colon = text.indexOf(': ');
      const objects = [text.slice(0, text.indexOf(' '))];
      reportDiagnostic(text.slice(0, colon), text.slice(colon + 2), { ...(proxy !== undefined && { proxy }), objects });
      yield;
    }
  };
  for (const { proxy, shape, context: servedContext } of filterRouters(proxies)) {
    yield;
    yield* reportAll(shape, servedContext, proxy.id);
  }
  for (const shape of selectorShapes(configs.Gateway, context)) {
    yield;
    if (shape !== undefined) yield* reportAll(shape, context);
  }
}

/** Missing objects are also reported as CREDENTIAL_NOT_FOUND. */
export const findUnservedCredentials: FindDiagnostics = function* ({ proxies }, reportDiagnostic) {
  for (const unservedCredential of unservedCredentials(proxies)) {
    yield;
    if (unservedCredential === undefined) continue;
    const { name, cause, text, namespace, proxy, users } = unservedCredential;
    const reportedUsers =
      cause === 'absent' ? [] : users.filter(({ isVisibleToAuthor }) => isVisibleToAuthor || cause !== 'content');
    const objects = [...new Set(reportedUsers.map(({ gateway }) => configKeyText(gateway)))];
    reportDiagnostic(`${namespace} ${name}`, `${name}: ${text}`, { proxy, objects });
  }
};

/** HTTPS servers without HTTP/3 although PILOT_ENABLE_QUIC_LISTENERS is set. */
export const findServersWithoutHttp3: FindDiagnostics = function* ({ proxies }, reportDiagnostic) {
  for (const { proxy, shape, context } of filterRouters(proxies)) {
    for (const mergedServer of mergeGateways(shape, context).ports.flatMap(({ servers }) => servers)) {
      yield;
      const reason = http3Offer(mergedServer, shape, context)?.reason;
      const { name, number } = mergedServer.server.port;
      const key = `${configKeyText(mergedServer.gateway)} server ${name || number}`;
      if (reason !== undefined) reportDiagnostic(key, `HTTP/3 is disabled: ${reason}`, { proxy: proxy.id });
    }
  }
};

export const findRevocationListProblems: FindDiagnostics = function* ({ configs, context }, reportDiagnostic) {
  const currentDate = new Date();
  const warnings = new Map<string, string>();
  for (const { config, lists } of context.credentials.withRevocationLists()) {
    yield;
    const listProblems = listWarnings(lists, currentDate, crlKeyOf(config.spec));
    if (listProblems.length > 0) warnings.set(`${config.namespace}/${config.name}`, listProblems.join('; '));
  }
  if (warnings.size === 0) return;
  const users = new Map<string, string[]>();
  for (const gateway of configs.Gateway) {
    yield;
    for (const secret of rootSecretsOf(gateway)) {
      if (!warnings.has(secret)) continue;
      const gateways = users.get(secret) ?? [];
      gateways.push(configKeyText(gateway));
      users.set(secret, gateways);
    }
  }
  for (const [secret, message] of warnings)
    reportDiagnostic(`Secret/${secret}`, message, { objects: users.get(secret) ?? [] });
};

/** Secrets (`namespace/name`) that may contain CAs for clients. */
function rootSecretsOf({ namespace, spec }: Config<Gateway>): readonly string[] {
  const names = spec.servers.flatMap(({ tls }) => (tls === undefined ? [] : credentialsOfServer(tls)));
  const secrets = names.flatMap((name) => {
    const credentialName = parseCredentialName(name, namespace);
    if (credentialName === undefined || !credentialName.roots || credentialName.kind !== 'Secret') return [];
    return [credentialName.name, rootsObjectName(credentialName.name)].map(
      (secretName) => `${credentialName.namespace}/${secretName}`,
    );
  });
  return [...new Set(secrets)];
}

export const findBackendTlsProblems: FindDiagnostics = function* ({ configs, context }, reportDiagnostic) {
  if (configs.BackendTLSPolicy.length === 0) return;
  for (const report of backendTlsReports(configs.BackendTLSPolicy, context.credentials)) {
    yield;
    if (report !== undefined) reportDiagnostic(configKeyText(report.policy), report.message);
  }
};
