import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { SettingsFiles } from '../../config/files/settings-files.ts';
import { MeshConfigs } from '../../config/snapshots/mesh-configs.ts';
import { MeshState } from '../../push/contexts/mesh-state.ts';
import { asKubernetesObject } from '../debug/kubernetes-object.ts';
import { diagnosticsOf } from './push-status.ts';

const rejectedPolicy = `apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: { name: web, namespace: shop }
spec: { action: deny }
`;

it('push_status contains restrictions that deny all requests, and unreadable files', async () => {
  const root = mkdtempSync(join(tmpdir(), 'chartpilot-refused-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const settings = new SettingsFiles(() => {});
  const directory = new MeshConfigs({ mesh: () => settings.mesh, domain: 'cluster.local' });
  const state = new MeshState({ settings, meshConfigs: directory, domain: 'cluster.local', clusterId: 'c' });
  writeFileSync(join(root, 'a.yaml'), rejectedPolicy);
  writeFileSync(join(root, 'b.yaml'), '{{ .Values.policy }');
  await directory.read([root]);
  state.computeServices();
  state.publishContext({ forced: true, changedKeys: [] });

  const status = diagnosticsOf(state, []);
  expect(status.pilot_refused_restrictions).toEqual({
    'AuthorizationPolicy shop/web': {
      message: `AuthorizationPolicy shop/web (${join(root, 'a.yaml')}:1) is rejected and has no valid earlier version: every request to the workloads of namespace shop is denied`,
    },
  });
  expect(Object.keys(status.pilot_unreadable_config_files ?? {})).toEqual([join(root, 'b.yaml')]);
  expect(asKubernetesObject(state.configs.byKey.get('AuthorizationPolicy/shop/web')!)).toMatchObject({
    metadata: { annotations: { 'chartpilot/stands-for': expect.stringContaining('is denied') } },
    spec: { action: 'DENY', rules: [{}] },
  });

  rmSync(join(root, 'a.yaml'));
  writeFileSync(join(root, 'b.yaml'), '');
  await directory.read([root]);
  state.publishContext({ forced: true, changedKeys: [] });
  expect(diagnosticsOf(state, []).pilot_refused_restrictions).toEqual({});
  expect(diagnosticsOf(state, []).pilot_unreadable_config_files).toEqual({});
});
