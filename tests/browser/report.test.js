import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { names, start } from './support.js';

let reports;
before(async () => { reports = await start(); });
after(async () => { await reports?.close(); });

async function withPage(name, options, work) {
  const page = await reports.open(name, options);
  try {
    await work(page);
  } finally {
    await page.context().close();
  }
}

const number = text => Number(text.replace(/,/g, '').match(/-?[\d.]+/)[0]);

for (const name of names) {
  test(`${name}: nothing is requested and nothing complained about, at three widths, with everything opened`, async () => {
    for (const width of [1280, 768, 390]) {
      await withPage(name, { viewport: { width, height: 844 } }, async page => {
        await page.evaluate(() => document.querySelectorAll('details').forEach(d => { d.open = true; }));
        for (const frame of await page.locator('.frame').all()) await frame.hover();
        await page.waitForLoadState('networkidle');
        assert.deepEqual(page.seen.requests, [page.url_]);
        assert.deepEqual(page.seen.complaints, []);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= width, `the page is ${wide} wide on a screen of ${width}`);
        if (process.env.SHOTS) {
          mkdirSync(process.env.SHOTS, { recursive: true });
          await page.screenshot({ path: join(process.env.SHOTS, `${name}-${width}.png`), fullPage: true });
        }
      });
    }
  });

  test(`${name}: no label of a chart covers another or leaves the page`, async () => {
    for (const width of [1280, 768, 390]) {
      await withPage(name, { viewport: { width, height: 844 } }, async page => {
        const faults = await page.evaluate(width => {
          const faults = [];
          for (const plot of document.querySelectorAll('svg.plot')) {
            const texts = [...plot.querySelectorAll('text')].filter(t => getComputedStyle(t).display !== 'none'
              && t.parentNode.getAttribute('visibility') !== 'hidden' && t.getBoundingClientRect().width > 0);
            const boxes = texts.map(t => [t.textContent, t.getBoundingClientRect()]);
            boxes.forEach(([text, a], n) => {
              if (a.left < 0 || a.right > width) faults.push(`${text} leaves the page`);
              for (const [other, b] of boxes.slice(n + 1)) {
                const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
                const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
                if (across > 0.5 && down > 2.5) faults.push(`${text} and ${other}`);
              }
            });
          }
          return faults;
        }, width);
        if (name !== 'hostile') assert.deepEqual(faults, [], `at ${width}`);
      });
    }
  });
}

test('hostile strings are shown and do nothing', async () => {
  await withPage('hostile', {}, async page => {
    await page.evaluate(() => document.querySelectorAll('details').forEach(d => { d.open = true; }));
    for (const button of await page.locator('button:visible').all()) {
      if (await button.isEnabled()) await button.click();
    }
    for (const frame of await page.locator('.frame').all()) {
      await frame.focus();
      await page.keyboard.press('ArrowRight');
    }
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    assert.equal(await page.locator('img, iframe, object, embed, link, a[href^="javascript"], base, form').count(), 0);
    assert.equal(await page.evaluate(() => document.querySelectorAll('script').length), 2);
    const attributes = await page.evaluate(() => [...document.querySelectorAll('*')]
      .flatMap(e => e.getAttributeNames()).filter(a => a.startsWith('on') || a === 'src'));
    assert.deepEqual(attributes, []);
    assert.ok((await page.locator('h1').textContent()).includes('<img src=x onerror='));
    assert.deepEqual(page.seen.requests, [page.url_]);
  });
});

test('the policy stops a script, a style and a request that somehow got into the page', async () => {
  await withPage('sweep', {}, async page => {
    const done = await page.evaluate(async () => {
      const script = document.createElement('script');
      script.textContent = 'window.pwned = 1';
      document.body.append(script);
      const style = document.createElement('style');
      style.textContent = 'body { margin-left: 77px !important }';
      document.head.append(style);
      const image = new Promise(resolve => {
        const img = new Image();
        img.onload = () => resolve('loaded');
        img.onerror = () => resolve('refused');
        img.src = 'data:image/gif;base64,R0lGODlhAQABAAAAACw=';
      });
      const fetched = await fetch('data:,x').then(() => 'fetched', () => 'refused');
      return { pwned: window.pwned, margin: getComputedStyle(document.body).marginLeft, image: await image, fetched };
    });
    assert.equal(done.pwned, undefined);
    assert.notEqual(done.margin, '77px');
    assert.equal(done.image, 'refused');
    assert.equal(done.fetched, 'refused');
  });
});

test('arrow keys read every value of the throughput as the record holds it', async () => {
  await withPage('open-loop', {}, async page => {
    const frame = page.locator('#throughput .frame');
    const output = page.locator('#throughput output').first();
    await frame.focus();
    await page.keyboard.press('Home');
    const read = [];
    for (let n = 0; n < 60; n++) {
      const at = await page.locator('.at').first().textContent();
      const value = await output.textContent();
      if (read.length && read[read.length - 1][0] === number(at)) break;
      read.push([number(at), number(value)]);
      await page.keyboard.press('ArrowRight');
    }
    const expected = reports.json('open-loop.throughput.json').map(([x, y]) => [Number(x.toFixed(2)), y]);
    assert.equal(read.length, expected.length);
    read.forEach(([x, y], n) => {
      assert.ok(Math.abs(x - expected[n][0]) < 0.011, `${x} is not ${expected[n][0]}`);
      assert.equal(y, expected[n][1]);
    });
    assert.match(await page.locator('#said').textContent(), /^[\d.]+ s: transactions [\d,]+\/s$/);
  });
});

test('lines are drawn where the values lie', async () => {
  await withPage('long', {}, async page => {
    const drawn = await page.evaluate(() => {
      const line = document.querySelector('#throughput .s .ln');
      const box = line.getBoundingClientRect();
      const plot = document.querySelector('#throughput svg.plot').getBoundingClientRect();
      const lines = [...document.querySelectorAll('#throughput .yt line')].map(l => l.getBoundingClientRect().top);
      return { top: (box.top - plot.top) / plot.height, bottom: (box.bottom - plot.top) / plot.height, lines: lines.length };
    });
    const values = reports.json('long.throughput.json').map(v => v[1]);
    const ticks = await page.locator('#throughput .yt text').allTextContents();
    const highest = number(ticks[ticks.length - 1]);
    assert.ok(Math.abs(drawn.top - (1 - Math.max(...values) / highest)) < 0.02, `${drawn.top}`);
    assert.ok(Math.abs(drawn.bottom - (1 - Math.min(...values) / highest)) < 0.02, `${drawn.bottom}`);
  });
});

test('the headline shows the summary of the record', async () => {
  await withPage('long', {}, async page => {
    const { steps: [step] } = reports.json('long.summary.json');
    const tps = step.throughput.transactions_per_s;
    const card = page.locator('.cards div', { hasText: 'transactions' }).first();
    assert.equal(number(await card.locator('dd').textContent()), Math.round(tps.value));
    const small = await card.locator('small').textContent();
    if (tps.low === null) {
      assert.equal(small, 'no interval');
    } else {
      assert.equal(small.startsWith('~'), !tps.level, 'a provisional interval is marked');
      assert.deepEqual(small.split('–').map(number), [Math.round(tps.low), Math.round(tps.high)]);
    }
    const rows = await page.locator('#operations tbody tr').count();
    assert.equal(rows, step.operations.length);
  });
});

test('the cursor is shared by all charts of an axis', async () => {
  await withPage('sweep', {}, async page => {
    await page.locator('#throughput .frame').scrollIntoViewIfNeeded();
    const box = await page.locator('#throughput .frame').boundingBox();
    await page.mouse.move(box.x + box.width * 0.5, box.y + box.height * 0.5);
    const time = page.locator('figure[data-group="time"]');
    const cursors = await time.locator('.cur').evaluateAll(lines => lines.map(l => l.getAttribute('d')));
    assert.ok(cursors.length >= 4, 'throughput, response, CPU and disk');
    assert.equal(new Set(cursors).size, 1);
    assert.match(cursors[0], /^M[\d.]+ 0V1000$/);
    for (const output of await page.locator('#response output, #host-cpu output').allTextContents()) {
      assert.match(output, /µs|ms|CPUs/);
    }
    await page.mouse.move(2, 2);
    assert.equal(await page.locator('#throughput .cur').getAttribute('d'), '');
  });
});

test('dragging zooms all charts of an axis, and a double click shows everything again', async () => {
  await withPage('long', {}, async page => {
    await page.locator('#throughput .frame').scrollIntoViewIfNeeded();
    const box = await page.locator('#throughput .frame').boundingBox();
    const ticks = () => page.locator('#response .xt text').allTextContents();
    const all = await ticks();
    await page.mouse.move(box.x + box.width * 0.25, box.y + 30);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.5, box.y + 40, { steps: 4 });
    await page.mouse.up();
    const views = await page.locator('figure[data-group="time"] svg.in').evaluateAll(all => all.map(s => s.getAttribute('viewBox')));
    assert.equal(new Set(views).size, 1);
    const [x, , width] = views[0].split(' ').map(Number);
    assert.ok(Math.abs(x - 2500) < 60 && Math.abs(width - 2500) < 60, views[0]);
    const zoomed = await ticks();
    assert.ok(zoomed.every(t => /^[2-5]:\d\d$/.test(t)) && zoomed.length >= 3, zoomed.join(' '));
    assert.equal(await page.getByRole('button', { name: 'Show the whole range' }).first().isEnabled(), true);
    await page.mouse.dblclick(box.x + 50, box.y + 50);
    assert.equal(await page.locator('#response svg.in').getAttribute('viewBox'), '0 0 10000 1000');
    assert.deepEqual(await ticks(), all);
  });
});

test('keys zoom and reset, and buttons do the same', async () => {
  await withPage('open-loop', {}, async page => {
    const view = () => page.locator('#distribution svg.in').getAttribute('viewBox');
    await page.locator('#distribution .frame').focus();
    await page.keyboard.press('+');
    assert.equal(await view(), '2500 0 5000 1000');
    await page.keyboard.press('-');
    assert.equal(await view(), '0 0 10000 1000');
    await page.keyboard.press('+');
    await page.keyboard.press('Escape');
    assert.equal(await view(), '0 0 10000 1000');
    const tools = page.locator('#distribution').locator('xpath=..').locator('xpath=preceding-sibling::*[1]');
    await tools.getByRole('button', { name: 'Zoom in' }).click();
    assert.equal(await view(), '2500 0 5000 1000');
    await tools.getByRole('button', { name: 'Show the whole range' }).click();
    assert.equal(await view(), '0 0 10000 1000');
  });
});

test('a finger reads values and does not zoom', async () => {
  const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
  await withPage('sweep', phone, async page => {
    await page.locator('#throughput .frame').scrollIntoViewIfNeeded();
    await page.locator('#throughput .frame').tap({ position: { x: 200, y: 60 } });
    assert.match(await page.locator('#throughput output').textContent(), /\/s$/);
    assert.equal(await page.locator('#throughput svg.in').getAttribute('viewBox'), '0 0 10000 1000');
  });
});

test('a line can be hidden and shown', async () => {
  await withPage('sweep', {}, async page => {
    const button = page.locator('#response .legend').getByRole('button', { name: 'max' });
    const line = page.locator('#response .s').nth(3);
    await button.click();
    assert.equal(await button.getAttribute('aria-pressed'), 'false');
    assert.equal(await line.isVisible(), false);
    await button.click();
    assert.equal(await line.isVisible(), true);
  });
});

test('the command can be copied and facts can be filtered', async () => {
  await withPage('sweep', { permissions: ['clipboard-read', 'clipboard-write'] }, async page => {
    await page.getByRole('button', { name: 'Copy' }).click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    const command = await page.evaluate(() => navigator.clipboard.readText());
    assert.equal(command, "mydyno bench oltp_read_write --dsn 'mysql://bench@localhost/?socket=/run/mysqld/mysqld.sock'"
      + ' --connections 1,4,16 --time 60s');
    await page.getByText(/^All \d+ facts by source$/).click();
    await page.getByRole('searchbox', { name: 'Filter facts' }).fill('flush_log');
    assert.equal(await page.locator('.all-facts tbody tr:not(.src):visible').count(), 1);
  });
});

test('without JavaScript the charts and their tables are all there', async () => {
  await withPage('sweep', { javaScriptEnabled: false }, async page => {
    for (const id of ['throughput', 'response', 'distribution', 'sweep-throughput', 'sweep-response', 'host-cpu', 'host-disk']) {
      const line = await page.locator(`#${id} .s .ln`).first().boundingBox();
      assert.ok(line.width > 150, `${id}: ${line.width}`);
      assert.ok(await page.locator(`#${id} .yt text`).count() >= 3, id);
    }
    await page.locator('#throughput summary').click();
    const cell = page.locator('#throughput tbody td').first();
    const [, transactions] = reports.json('sweep.throughput.json')[0];
    assert.equal(number(await cell.textContent()), transactions);
    assert.deepEqual(page.seen.requests, [page.url_]);
  });
});

test('the page can be read by ear and by keyboard', async () => {
  for (const name of ['sweep', 'two', 'empty']) {
    await withPage(name, {}, async page => {
      const faults = await page.evaluate(() => {
        const faults = [];
        if (document.documentElement.lang !== 'en') faults.push('no language');
        for (const plot of document.querySelectorAll('svg[role="img"]')) {
          const names = plot.getAttribute('aria-labelledby').split(' ').map(id => document.getElementById(id)?.textContent.trim());
          if (names.length !== 2 || names.some(n => !n || n === '.')) faults.push('a chart without a name: ' + names);
        }
        for (const svg of document.querySelectorAll('svg:not([role]):not(svg svg)')) {
          if (svg.getAttribute('aria-hidden') !== 'true') faults.push('a drawing that is neither named nor hidden');
        }
        let last = 0;
        for (const heading of document.querySelectorAll('h1, h2, h3')) {
          const level = Number(heading.tagName[1]);
          if (level > last + 1) faults.push('heading ' + heading.textContent + ' skips a level');
          last = level;
        }
        if (document.querySelectorAll('h1').length !== 1) faults.push('not one h1');
        for (const th of document.querySelectorAll('th')) if (!th.scope) faults.push('a head without a scope');
        const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
        for (const id of ids) if (ids.filter(i => i === id).length > 1) faults.push('two of id ' + id);
        for (const link of document.querySelectorAll('a[href^="#"]')) {
          if (!document.getElementById(link.getAttribute('href').slice(1))) faults.push('a link to nothing');
        }
        return faults;
      });
      assert.deepEqual([...new Set(faults)], [], name);
      for (const button of await page.locator('button').all()) {
        assert.ok((await button.textContent()) || (await button.getAttribute('aria-label')));
      }
    });
  }
});

const schemes = ['light', 'dark'];
for (const colorScheme of schemes) {
  test(`text and lines have contrast enough in the ${colorScheme} scheme`, async () => {
    await withPage('errors', { colorScheme }, async page => {
      const ratios = await page.evaluate(() => {
        const light = text => {
          const parts = text.match(/[\d.]+/g).slice(0, 3).map(n => n / 255)
            .map(c => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
          return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
        };
        const paper = light(getComputedStyle(document.body).backgroundColor);
        const ratio = color => {
          const [a, b] = [light(color), paper].sort((x, y) => y - x);
          return (a + 0.05) / (b + 0.05);
        };
        const probe = document.createElement('i');
        document.body.append(probe);
        const of = name => {
          probe.style.color = `var(--${name})`;
          return ratio(getComputedStyle(probe).color);
        };
        return {
          paper,
          text: ['text', 'dim', 'bad', 'good', 'link'].map(n => [n, of(n)]),
          lines: ['c0', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6'].map(n => [n, of(n)]),
        };
      });
      assert.equal(ratios.paper < 0.2, colorScheme === 'dark');
      for (const [name, ratio] of ratios.text) assert.ok(ratio >= 4.5, `${name}: ${ratio.toFixed(2)}`);
      for (const [name, ratio] of ratios.lines) assert.ok(ratio >= 3, `${name}: ${ratio.toFixed(2)}`);
    });
  });
}

test('printed, the page keeps its charts and leaves out what only a screen can use', async () => {
  await withPage('sweep', { colorScheme: 'dark' }, async page => {
    await page.emulateMedia({ media: 'print' });
    assert.equal(await page.locator('nav').isVisible(), false);
    assert.equal(await page.locator('.tools').first().isVisible(), false);
    assert.equal(await page.locator('#throughput .s .ln').first().isVisible(), true);
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), 'rgb(255, 255, 255)');
    const pdf = await page.pdf({ format: 'A4' });
    assert.equal(pdf.subarray(0, 5).toString(), '%PDF-');
  });
});

test('how long a run of ten minutes takes to open', async t => {
  await withPage('long', {}, async page => {
    const took = await page.evaluate(() => {
      const [entry] = performance.getEntriesByType('navigation');
      return { interactive_ms: entry.domInteractive, loaded_ms: entry.loadEventEnd };
    });
    // Said, not asserted: how fast this machine is says nothing about the page.
    t.diagnostic(`interactive after ${took.interactive_ms.toFixed(0)} ms, loaded after ${took.loaded_ms.toFixed(0)} ms,`
      + ` ${(reports.html('long').length / 1000).toFixed(0)} kB`);
  });
});
