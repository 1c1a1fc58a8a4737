//! Ordinary least squares for small designs, by Householder's QR.

use crate::Error;
use crate::special::{f_sf, t_quantile, t_sf};

/// A fitted linear model.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// One coefficient for each column.
    pub coefficients: Vec<f64>,
    /// Standard errors of the coefficients; `None` when no degree of freedom is left.
    pub standard_errors: Option<Vec<f64>>,
    /// Rows minus columns.
    pub df: usize,
    /// Sum of squared residuals.
    pub residual_squares: f64,
}

impl Fit {
    /// Fits `y` by the columns of `x`, given row by row.
    ///
    /// # Errors
    /// Rows of different length, fewer rows than columns, or linearly dependent columns.
    pub fn of(x: &[Vec<f64>], y: &[f64]) -> Result<Self, Error> {
        let (rows, columns) = (x.len(), x.first().map_or(0, Vec::len));
        if rows != y.len() {
            return Err(Error::Lengths { a: "x", a_len: rows, b: "y", b_len: y.len() });
        }
        if columns == 0 || rows < columns || x.iter().any(|row| row.len() != columns) {
            return Err(Error::Design(format!("{rows} rows cannot be fitted by {columns} columns")));
        }
        // The matrix is stored by column, so that a reflection is two passes over slices.
        let mut r: Vec<Vec<f64>> = (0..columns).map(|j| x.iter().map(|row| row[j]).collect()).collect();
        let mut b = y.to_vec();
        for j in 0..columns {
            let before = r[j].iter().map(|v| v * v).sum::<f64>().sqrt();
            let norm = r[j][j..].iter().map(|v| v * v).sum::<f64>().sqrt();
            if norm <= 1e-10 * before || norm == 0.0 {
                return Err(Error::Design(format!("column {j} of the design says what others say already")));
            }
            let mut v = r[j][j..].to_vec();
            v[0] += if v[0] > 0.0 { norm } else { -norm };
            let vv: f64 = v.iter().map(|v| v * v).sum();
            for target in r[j..].iter_mut().chain(std::iter::once(&mut b)) {
                let tail = &mut target[j..];
                let factor = 2.0 * v.iter().zip(&*tail).map(|(v, t)| v * t).sum::<f64>() / vv;
                tail.iter_mut().zip(&v).for_each(|(t, v)| *t -= factor * v);
            }
        }
        let solve = |rhs: &dyn Fn(usize) -> f64| -> Vec<f64> {
            let mut out = vec![0.0; columns];
            for i in (0..columns).rev() {
                let known: f64 = (i + 1..columns).map(|c| r[c][i] * out[c]).sum();
                out[i] = (rhs(i) - known) / r[i][i];
            }
            out
        };
        let coefficients = solve(&|i| b[i]);
        let residual_squares: f64 = b[columns..].iter().map(|b| b * b).sum();
        let df = rows - columns;
        let standard_errors = (df > 0).then(|| {
            // Rows of R⁻¹ give the variances: (XᵀX)⁻¹ = R⁻¹R⁻ᵀ.
            let mut variances = vec![0.0; columns];
            for k in 0..columns {
                let column = solve(&|i| f64::from(u8::from(i == k)));
                variances.iter_mut().zip(&column).for_each(|(v, c)| *v += c * c);
            }
            variances.iter().map(|v| (v * residual_squares / df as f64).sqrt()).collect()
        });
        Ok(Self { coefficients, standard_errors, df, residual_squares })
    }

    /// Interval of a coefficient at a level like 0.95; `None` when no degree of freedom is left.
    pub fn interval(&self, column: usize, level: f64) -> Option<(f64, f64)> {
        let (value, se) = (*self.coefficients.get(column)?, *self.standard_errors.as_ref()?.get(column)?);
        let margin = t_quantile(0.5 + 0.5 * level, self.df as f64) * se;
        Some((value - margin, value + margin))
    }

    /// Two-sided p value of the hypothesis that a coefficient is 0.
    pub fn p_value(&self, column: usize) -> Option<f64> {
        let (value, se) = (*self.coefficients.get(column)?, *self.standard_errors.as_ref()?.get(column)?);
        Some(2.0 * t_sf((value / se).abs(), self.df as f64))
    }

    /// p value of the F test of this model against a smaller model nested in it.
    pub fn against(&self, smaller: &Self) -> Option<f64> {
        let (df1, df2) = (smaller.df.checked_sub(self.df).filter(|d| *d > 0)? as f64, self.df as f64);
        if self.df == 0 || self.residual_squares <= 0.0 {
            return None;
        }
        let f = (smaller.residual_squares - self.residual_squares) / df1 / (self.residual_squares / df2);
        Some(f_sf(f, df1, df2))
    }
}
