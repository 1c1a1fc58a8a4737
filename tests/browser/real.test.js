// The report of two real runs: real servers, real records, hostile strings on their whole way.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { hostile, startReal } from './support.js';

let reports;
before(async () => { reports = await startReal(); });
after(async () => { await reports?.close(); });

for (const javaScriptEnabled of [true, false]) {
  test(`two real runs are shown at three widths, JavaScript ${javaScriptEnabled ? 'on' : 'off'}, and nothing is requested`, async () => {
    for (const width of [1280, 768, 390]) {
      const page = await reports.open('real', { viewport: { width, height: 844 }, javaScriptEnabled });
      try {
        await page.waitForLoadState('networkidle');
        assert.deepEqual(page.seen.requests, [page.url_]);
        assert.deepEqual(page.seen.complaints, []);
        assert.ok(await page.locator('svg.plot').count() >= 4);
        const box = await page.locator('body').boundingBox();
        assert.ok(box.width <= width, `the page is ${box.width} wide on a screen of ${width}`);
        if (process.env.SHOTS) {
          mkdirSync(process.env.SHOTS, { recursive: true });
          await page.screenshot({ path: join(process.env.SHOTS, `real-${javaScriptEnabled}-${width}.png`), fullPage: true });
        }
      } finally {
        await page.context().close();
      }
    }
  });
}

test('what a real server and a user wrote is shown as text and does nothing', async () => {
  const page = await reports.open('real');
  try {
    await page.evaluate(() => document.querySelectorAll('details').forEach(d => { d.open = true; }));
    await page.waitForLoadState('networkidle');
    const text = await page.evaluate(() => document.body.textContent);
    assert.ok(text.includes(`report_host=${hostile}`), 'the setting of the server is not shown');
    assert.ok(text.includes(`SELECT '${hostile}'`), 'the statement is not shown');
    assert.notEqual(await page.title(), 'run');
    assert.equal(await page.locator('img, svg[onload]').count(), 0);
    assert.deepEqual(page.seen.requests, [page.url_]);
    assert.deepEqual(page.seen.complaints, []);
  } finally {
    await page.context().close();
  }
});
