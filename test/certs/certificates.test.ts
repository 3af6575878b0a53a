import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createAuthority, loadAuthority } from './authority.ts';
import { replaceFiles, swapMountedFiles } from './certificate-directory.ts';
import { createServerCertificates, openServerCertificates, renewServerCertificate } from './issued-certificates.ts';

function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'chartpilot-certs-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return directory;
}

test('an issued certificate is signed by its authority and names its hosts', () => {
  const authority = createAuthority();
  const issuedCertificate = authority.issue(['sample.localhost', '127.0.0.1']);
  const certificate = new X509Certificate(issuedCertificate.certificate);
  const root = new X509Certificate(authority.certificate);
  expect(certificate.verify(root.publicKey)).toBe(true);
  expect(certificate.checkIssued(root)).toBe(true);
  expect(root.ca).toBe(true);
  expect(certificate.ca).toBe(false);
  expect(certificate.subjectAltName).toBe('DNS:sample.localhost, IP Address:127.0.0.1');
  expect(certificate.validToDate.getTime()).toBeGreaterThan(Date.now());
});

test('every certificate has a unique serial number, which matches the reported one', () => {
  const authority = createAuthority();
  const serials = Array.from({ length: 20 }, () => {
    const issuedCertificate = authority.issue(['a']);
    expect(new X509Certificate(issuedCertificate.certificate).serialNumber).toBe(issuedCertificate.serialNumber);
    return issuedCertificate.serialNumber;
  });
  expect(new Set(serials).size).toBe(20);
});

test('an authority that is loaded from files issues valid certificates', () => {
  const authority = createAuthority('written down');
  const reloadedAuthority = loadAuthority(authority.certificate, authority.privateKey);
  const certificate = new X509Certificate(reloadedAuthority.issue(['a']).certificate);
  expect(certificate.checkIssued(new X509Certificate(authority.certificate))).toBe(true);
});

test('files are replaced by renames, without leftover files', () => {
  const directory = temporaryDirectory();
  replaceFiles(directory, { 'tls.crt': 'one', 'tls.key': 'one' });
  replaceFiles(directory, { 'tls.crt': 'two', 'tls.key': 'two' });
  expect(readdirSync(directory).sort()).toEqual(['tls.crt', 'tls.key']);
  expect(readFileSync(join(directory, 'tls.crt'), 'utf8')).toBe('two');
});

test('a mounted directory replaces all files at once through ..data and removes the old generation', () => {
  const directory = temporaryDirectory();
  swapMountedFiles(directory, { 'tls.crt': 'one', 'tls.key': 'one' });
  const previousLink = readlinkSync(join(directory, '..data'));
  swapMountedFiles(directory, { 'tls.crt': 'two', 'tls.key': 'two' });
  const linkAfter = readlinkSync(join(directory, '..data'));
  expect(linkAfter).not.toBe(previousLink);
  expect(readlinkSync(join(directory, 'tls.crt'))).toBe('..data/tls.crt');
  expect(readFileSync(join(directory, 'tls.key'), 'utf8')).toBe('two');
  expect(readdirSync(directory).sort()).toEqual(['..data', linkAfter, 'tls.crt', 'tls.key'].sort());
});

test('a renewed server certificate has the same hosts and authority and a new serial number', () => {
  const root = temporaryDirectory();
  const certificates = createServerCertificates(root, ['sample.localhost']);
  const read = (): X509Certificate => new X509Certificate(readFileSync(join(certificates.directory, 'tls.crt')));
  const first = read();
  const renewed = renewServerCertificate(openServerCertificates(root));
  expect(read().serialNumber).toBe(renewed.serialNumber);
  expect(read().serialNumber).not.toBe(first.serialNumber);
  expect(read().subjectAltName).toBe(first.subjectAltName);
  expect(read().checkIssued(new X509Certificate(readFileSync(certificates.caFile)))).toBe(true);
});
