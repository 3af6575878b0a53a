/** The secure port changes certificates from each source without a restart. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { credentials } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { typeUrls } from '../../../../test/ads-client.ts';
import { createAuthority } from '../../../../test/certs/authority.ts';
import { CertificateCaller, serverName } from '../../../../test/harness/certificate-caller.ts';
import { ControlPlane, sidecar, stopControlPlanes } from '../../../../test/harness/control-plane.ts';
import { eventually } from '../../../../test/harness/eventually.ts';
import { type Certificate, readCertificate } from '../../../identity/certificate.ts';
import { issueRoot } from '../../../identity/issue.ts';
import { TrustBundle } from '../../../identity/trust-bundle.ts';
import { buildAuthorityMaterial } from '../authority-material.ts';
import { isCertificateDue, issueControlPlaneCertificate } from './own-certificate.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'port-'));
});
afterEach(async () => {
  await stopControlPlanes();
  rmSync(directory, { recursive: true });
});

async function startPlane(flags: object, env: NodeJS.ProcessEnv): Promise<ControlPlane> {
  const plane = ControlPlane.starting({ secureGRPCAddr: '127.0.0.1:0', ...flags }, undefined, env);
  await plane.ready();
  return plane;
}

/** Certificate presented in a new handshake. */
function presentedCertificate(plane: ControlPlane): Promise<Certificate> {
  return new Promise((resolve, reject) => {
    const options = {
      port: plane.port('ads.listening'),
      servername: 'istiod',
      ALPNProtocols: ['h2'],
      rejectUnauthorized: false,
    };
    const socket = connect(options, () => {
      resolve(readCertificate(socket.getPeerX509Certificate()!.raw));
      socket.destroy();
    });
    socket.on('error', reject);
  });
}

const eventsOf = (plane: ControlPlane, type: string) =>
  plane.records.flatMap((record) => (record.kind === 'event' && record.event.type === type ? [record.event] : []));

const rootOf = (name: string) => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const life = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 3_600_000) };
  return {
    privateKey,
    certificate: readCertificate(issueRoot(privateKey, { organization: 'a', commonName: name }, life)),
  };
};

describe('a certificate from files', () => {
  const authority = createAuthority();
  const fileOf = (name: string): string => join(directory, name);
  const write = (keyPair: { certificate: string; privateKey: string }): void => {
    writeFileSync(fileOf('key'), keyPair.privateKey);
    writeFileSync(fileOf('cert'), keyPair.certificate);
  };
  const issue = () => authority.issue(['127.0.0.1']);
  const startWithFiles = async (): Promise<ControlPlane> => {
    writeFileSync(fileOf('ca'), authority.certificate);
    write(issue());
    const flags = { caCertFile: fileOf('ca'), tlsCertFile: fileOf('cert'), tlsKeyFile: fileOf('key') };
    return startPlane(flags, { XDS_AUTH: 'false' });
  };
  const showing = (plane: ControlPlane, serialNumber: string) =>
    eventually('it is shown', async () => (await presentedCertificate(plane)).serialNumber === serialNumber);

  it('is replaced three times without closing streams', async () => {
    const plane = await startWithFiles();
    const trusted = credentials.createSsl(Buffer.from(authority.certificate));
    const stream = plane.client(plane.port('ads.listening'), trusted).sotw();
    stream.send({ node: sidecar, typeUrl: typeUrls.CDS });
    await stream.next();
    for (let i = 0; i < 3; i++) {
      const next = issue();
      write(next);
      await showing(plane, next.serialNumber);
    }
    expect(eventsOf(plane, 'certificate.changed')).toHaveLength(3);
    stream.send({ typeUrl: typeUrls.LDS });
    expect((await stream.next()).typeUrl).toBe(typeUrls.LDS);
    expect(plane.deviations()).toEqual([]);
  });

  const brokenFiles: [string, () => void, RegExp][] = [
    [
      'the key of another certificate',
      () => writeFileSync(fileOf('key'), issue().privateKey),
      /--tlsKeyFile .* does not match the certificate/,
    ],
    [
      'a certificate of an unknown CA',
      () => write(createAuthority('x').issue(['127.0.0.1'])),
      /--tlsCertFile .* no valid chain to a root/,
    ],
    [
      'a truncated certificate',
      () => writeFileSync(fileOf('cert'), issue().certificate.slice(0, 200)),
      /--tlsCertFile .* not valid PEM/,
    ],
    ['no certificate', () => rmSync(fileOf('cert')), /ENOENT/],
  ];
  it.each(brokenFiles)(
    'is kept if its files change to %s, and replaced after the error is corrected',
    async (_, spoil, reason) => {
      const plane = await startWithFiles();
      const { serialNumber } = await presentedCertificate(plane);
      spoil();
      await eventually('it is refused', async () => eventsOf(plane, 'certificate.rejected').length > 0);
      expect(eventsOf(plane, 'certificate.rejected')[0]?.reason).toMatch(reason);
      expect((await presentedCertificate(plane)).serialNumber).toBe(serialNumber);
      const next = issue();
      write(next);
      await showing(plane, next.serialNumber);
    },
  );
});

describe('a certificate signed by the authority', () => {
  const page = async (plane: ControlPlane): Promise<{ stage: string; signer: { id: string } }> =>
    (await plane.get('/debug/authorityz')).json();
  const rotate = (plane: ControlPlane) =>
    fetch(`http://127.0.0.1:${plane.port('http.listening')}/debug/authorityz?order=rotate`, {
      method: 'POST',
      headers: plane.operator,
    });

  it('is reissued after each of three rotations without closing streams', async () => {
    const plane = await startPlane({}, { SELF_SIGNED_CA_DIR: directory, XDS_AUTH: 'false' });
    const caller = new CertificateCaller(directory);
    const stream = plane.client(plane.port('ads.listening'), caller.channel(), serverName).sotw();
    stream.send({ node: sidecar, typeUrl: typeUrls.CDS });
    await stream.next();
    const signers = new Set([(await page(plane)).signer.id]);
    for (let i = 1; i <= 3; i++) {
      await rotate(plane);
      await eventually('another signs', async () => {
        const { stage, signer } = await page(plane);
        return stage === 'steady' && !signers.has(signer.id);
      });
      const { signer } = await page(plane);
      signers.add(signer.id);
      expect((await presentedCertificate(plane)).authorityKeyId).toBe(signer.id);
    }
    stream.send({ typeUrl: typeUrls.LDS });
    expect((await stream.next()).typeUrl).toBe(typeUrls.LDS);
  });

  it('is reissued after each of three changes of the plugged-in authority', async () => {
    const plugged = join(directory, 'plugged');
    mkdirSync(plugged);
    const plug = (): Certificate => {
      const { privateKey, certificate } = rootOf(`root ${Math.random()}`);
      writeFileSync(join(plugged, 'ca-key.pem'), privateKey.export({ format: 'pem', type: 'pkcs8' }));
      for (const name of ['ca-cert.pem', 'root-cert.pem']) writeFileSync(join(plugged, name), certificate.pem);
      return certificate;
    };
    let root = plug();
    const plane = await startPlane({}, { SELF_SIGNED_CA_DIR: join(directory, 'state'), ROOT_CA_DIR: plugged });
    for (let i = 0; i < 4; i++) {
      expect((await presentedCertificate(plane)).authorityKeyId).toBe(root.subjectKeyId);
      if (i === 3) break;
      root = plug();
      await eventually('it signs alone', async () => {
        const { stage, signer } = await page(plane);
        return stage === 'steady' && signer.id === root.subjectKeyId;
      });
    }
  });
});

describe('isCertificateDue', () => {
  const hour = 3_600_000;
  const now = Date.now();
  const authorityOf = (endsAt: number) => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const life = { notBefore: new Date(now - hour), notAfter: new Date(Math.floor(endsAt / 1000) * 1000) };
    const certificate = readCertificate(issueRoot(privateKey, { organization: 'a', commonName: 'b' }, life));
    return buildAuthorityMaterial({ certificate, privateKey }, [], [certificate], new Date(now));
  };
  const [shortLived, longLived] = [authorityOf(now + 9 * hour), authorityOf(now + 90 * hour)];
  const activeWith = (serverAuthority: typeof shortLived, ...trusted: (typeof shortLived)[]) => ({
    material: serverAuthority,
    serverAuthority,
    authorities: trusted,
    tainted: [],
    roots: trusted.map(({ id }) => id),
    bundle: new TrustBundle(
      'a',
      trusted.map(({ root }) => root),
    ),
  });
  const expiring = issueControlPlaneCertificate(activeWith(shortLived, shortLived), ['a'], new Date(now));

  it.each([
    ['true if its root is no longer trusted', true, activeWith(longLived, longLived), 0],
    ['false while its root is trusted', false, activeWith(longLived, longLived, shortLived), 0],
    ['true if less than a third of its lifetime remains', true, activeWith(longLived, longLived, shortLived), 7],
    ['false if a new certificate would expire at the same time', false, activeWith(shortLived, shortLived), 7],
    ['true if the clock was set back to before its start', true, activeWith(shortLived, shortLived), -30],
  ])('returns %s', (_, isDue, authority, hours) => {
    expect(isCertificateDue(expiring, authority, new Date(now + hours * hour))).toBe(isDue);
  });

  it('port certificates of an expired authority are replaced immediately by the next authority', () => {
    const afterExpiry = new Date(now + 24 * hour);
    const expiredIssuerCertificate = issueControlPlaneCertificate(
      activeWith(shortLived, shortLived),
      ['istiod'],
      afterExpiry,
    );
    expect(isCertificateDue(expiredIssuerCertificate, activeWith(shortLived, shortLived), afterExpiry)).toBe(false);
    expect(isCertificateDue(expiredIssuerCertificate, activeWith(longLived, longLived, shortLived), afterExpiry)).toBe(
      true,
    );
  });
});
